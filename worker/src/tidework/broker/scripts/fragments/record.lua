-- keys: records ready scheduled
-- The packed state of a job. A job that was never claimed has none: it is ready or scheduled,
-- and the score says its priority and due time. Bodies are not looked at.
--   ready     score = priority * 1e13 + due ms
--   scheduled score = due ms * 10 + priority, or HELD
local WAITING, RUNNING, SUCCEEDED, DEAD, CANCELLED = 87, 82, 83, 68, 67
local LAYOUT = '>BBHHHHBdddss'
local BY_PRIORITY = 1e13
local HELD = 9e15

local function save(id, r)
  redis.call('HSET', K.records, id, struct.pack(LAYOUT, r.state, r.priority, r.attempt,
    r.deliveries, r.losses, r.releases, r.cancel, r.available, r.changed, r.started, r.token, r.cron))
end

local function fresh(priority, available)
  return {state = WAITING, priority = priority, attempt = 0, deliveries = 0, losses = 0,
    releases = 0, cancel = 0, available = available, changed = available, started = 0,
    token = '', cron = ''}
end

local function unpack_record(packed)
  local r = {}
  r.state, r.priority, r.attempt, r.deliveries, r.losses, r.releases, r.cancel, r.available,
    r.changed, r.started, r.token, r.cron = struct.unpack(LAYOUT, packed)
  return r
end

-- nil for a job that is not known.
local function load(id)
  local packed = redis.call('HGET', K.records, id)
  if packed then return unpack_record(packed) end
  local score = tonumber(redis.call('ZSCORE', K.ready, id))
  if score then return fresh(math.floor(score / BY_PRIORITY), score % BY_PRIORITY) end
  score = tonumber(redis.call('ZSCORE', K.scheduled, id))
  if score then return fresh(score % 10, math.floor(score / 10)) end
  return nil
end

local function worker_of(token)
  return string.match(token, '^(.*):%d+$') or ''
end
