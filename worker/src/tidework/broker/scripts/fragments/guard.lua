-- keys: guard leases
-- Reaping stands still for one lease after the server was restarted or stood still itself:
-- nobody could renew meanwhile, so an expired lease says nothing about its worker.
-- Signs of life are whatever call stamps the guard; they come at least once a second while
-- a leader keeps the queue, and every third of a lease while a worker holds one.
local SHORTEST_GAP_MS = 3000

-- The clock was set back: leases keep what they had left, or the dead would hold theirs for as long.
local function shift_leases(back)
  local leases = redis.call('ZRANGE', K.leases, 0, -1, 'WITHSCORES')
  for i = 1, #leases, 2 do
    redis.call('ZADD', K.leases, tonumber(leases[i + 1]) - back, leases[i])
  end
end

local held_until -- nil: not known

local function stamp(lease_ms)
  local found = redis.call('HMGET', K.guard, 'seen', 'hold', 'run')
  local seen, hold = tonumber(found[1]), tonumber(found[2]) or 0
  if not seen or now - seen >= 1000 or now < seen then
    if seen and now < seen then
      shift_leases(seen - now)
      hold = hold - (seen - now)
    end
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
    if seen and (run ~= found[3] or now - seen > math.max(lease_ms / 2, SHORTEST_GAP_MS)) then
      hold = now + lease_ms
    end
    redis.call('HSET', K.guard, 'seen', now, 'hold', hold, 'run', run)
  end
  held_until = hold
  return now >= hold
end

local function reaping_held_until()
  held_until = held_until or tonumber(redis.call('HGET', K.guard, 'hold')) or 0
  return held_until
end
