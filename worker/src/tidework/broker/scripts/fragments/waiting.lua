-- keys: inbox meta
-- Putting jobs where they wait, and waking one worker that blocks on the inbox.
local new_earliest = false

local function make_ready(id, priority, available)
  redis.call('ZADD', K.ready, priority * BY_PRIORITY + available, id)
end

local function make_scheduled(id, priority, available)
  redis.call('ZADD', K.scheduled, available * 10 + priority, id)
end

local function earliest_due()
  local first = redis.call('ZRANGE', K.scheduled, 0, 0, 'WITHSCORES')
  local score = tonumber(first[2])
  if not score or score >= HELD then return nil end
  return math.floor(score / 10)
end

local function is_paused()
  return redis.call('HEXISTS', K.meta, 'paused') == 1
end

-- While the queue is paused nobody is woken for work that nobody may claim.
local function wake()
  if (new_earliest or redis.call('EXISTS', K.ready) == 1) and redis.call('EXISTS', K.inbox) == 0
      and not is_paused() then
    redis.call('LPUSH', K.inbox, '!')
  end
end
