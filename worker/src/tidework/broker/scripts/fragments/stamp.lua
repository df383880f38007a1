-- keys: guard spans
-- Signs of life are whatever call stamps the guard; they come at least once a second while
-- a leader keeps the queue, and every third of a lease while a worker holds one. Needs guard,
-- and set_back as a seldom one.
local SHORTEST_GAP_MS = 3000

-- When the latest span was set that is not over: later than now after the clock was set back.
local function latest_span()
  local last = redis.call('ZRANGE', K.spans, -1, -1, 'WITHSCORES')
  return tonumber(last[2]) or 0
end

-- False while reaping has to stand still.
local function stamp(lease_ms)
  local found = redis.call('HMGET', K.guard, 'seen', 'hold', 'run')
  local seen, hold = tonumber(found[1]), tonumber(found[2]) or 0
  if not seen or now - seen >= 1000 or now < seen then
    local back = math.max(seen or 0, latest_span()) - now
    if back > 0 then
      local stamped_back = math.max(0, (seen or 0) - now)
      S.set_back(back, stamped_back)
      hold = hold - stamped_back
    end
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
    if seen and (run ~= found[3] or now - seen > math.max(lease_ms / 2, SHORTEST_GAP_MS)) then
      hold = now + lease_ms
    end
    redis.call('HSET', K.guard, 'seen', now, 'hold', hold, 'run', run)
  end
  return now >= reaping_held_until(hold)
end
