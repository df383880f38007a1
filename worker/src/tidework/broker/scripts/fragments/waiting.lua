-- keys: inbox jobs tombstones runs
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

-- False if the id is known, or was until a short while ago.
local function insert(id, body, priority, available, cron, hold)
  if (tonumber(redis.call('ZSCORE', K.tombstones, id)) or 0) > now then return false end
  if redis.call('HSETNX', K.jobs, id, body) == 0 then return false end
  count('enqueued')
  if cron ~= '' then
    redis.call('ZADD', K.runs, 0, cron .. '|' .. id)
    local r = fresh(priority, available)
    r.cron = cron
    r.changed = now
    save(id, r)
  end
  if hold then
    redis.call('ZADD', K.scheduled, HELD, id)
  elseif available > now then
    local first = earliest_due()
    if not first or available < first then new_earliest = true end
    make_scheduled(id, priority, available)
  else
    make_ready(id, priority, available)
  end
  return true
end

local function wake()
  if (new_earliest or redis.call('EXISTS', K.ready) == 1) and redis.call('EXISTS', K.inbox) == 0 then
    redis.call('LPUSH', K.inbox, '!')
  end
end
