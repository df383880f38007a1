-- keys: guard
-- Reaping stands still for one lease after the server was restarted or stood still itself:
-- nobody could renew meanwhile, so an expired lease says nothing about its worker (stamp.lua).
local held_until -- nil: not known

-- stamped: what was stored just now, nil where nothing was.
local function reaping_held_until(stamped)
  held_until = stamped or held_until or tonumber(redis.call('HGET', K.guard, 'hold')) or 0
  return held_until
end
