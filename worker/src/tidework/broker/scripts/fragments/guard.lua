-- keys: guard
-- Reaping stands still for one lease after the server was restarted or stood still itself:
-- nobody could renew meanwhile, so an expired lease says nothing about its worker (stamp.lua).
local held_until -- nil: not known

local function reaping_held_until()
  held_until = held_until or tonumber(redis.call('HGET', K.guard, 'hold')) or 0
  return held_until
end
