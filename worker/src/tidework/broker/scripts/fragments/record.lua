-- keys: records ready scheduled
-- The packed state of a job. A job that was never claimed has none: it is ready or scheduled,
-- and the score says its priority and due time. `jobs` holds the task's name, a zero byte, and the
-- envelope, which no script looks at.
--   token       of the lease, also of the one under which a job succeeded
--   raw         1 for a document that did not validate, 2 where only its beginning was kept
--   changed     ms of the last change of state since the enqueue, 0 before the first
--   unique      '' or how its key is held (e, s, t: until end, start, ttl) and the key
--   task        known from the first claim on;  fingerprint: of the error of a dead one
--   ready     score = priority * 1e13 + due ms
--   scheduled score = due ms * 10 + priority, or HELD
local WAITING, RUNNING, SUCCEEDED, DEAD, CANCELLED = 87, 82, 83, 68, 67
local LAYOUT = '>BBHHHHBBdddsssss'
local BY_PRIORITY = 1e13
local HELD = 9e15

local function pack_record(r)
  return struct.pack(LAYOUT, r.state, r.priority, r.attempt, r.deliveries, r.losses, r.releases,
    r.cancel, r.raw, r.available, r.changed, r.started, r.token, r.cron, r.unique, r.task,
    r.fingerprint)
end

local function save(id, r)
  put(K.records, id, pack_record(r))
end

local function fresh(priority, available)
  return {state = WAITING, priority = priority, attempt = 0, deliveries = 0, losses = 0,
    releases = 0, cancel = 0, raw = 0, available = available, changed = 0, started = 0,
    token = '', cron = '', unique = '', task = '', fingerprint = ''}
end

local function unpack_record(packed)
  local r = {}
  r.state, r.priority, r.attempt, r.deliveries, r.losses, r.releases, r.cancel, r.raw, r.available,
    r.changed, r.started, r.token, r.cron, r.unique, r.task, r.fingerprint = struct.unpack(LAYOUT, packed)
  return r
end

-- nil for a job that is not known.
local function load(id)
  local packed = stored(K.records, id)
  if packed then return unpack_record(packed) end
  local score = score_of(K.ready, id)
  if score then return fresh(math.floor(score / BY_PRIORITY), score % BY_PRIORITY) end
  score = score_of(K.scheduled, id)
  if score then return fresh(score % 10, math.floor(score / 10)) end
  return nil
end

local function worker_of(token)
  return string.match(token, '^(.*):%d+$') or ''
end

-- What `jobs` holds, apart: the task's name and the envelope.
local function split_body(whole)
  local zero = string.find(whole, '\0', 1, true)
  return string.sub(whole, 1, zero - 1), string.sub(whole, zero + 1)
end

local function task_of(whole)
  return string.sub(whole, 1, string.find(whole, '\0', 1, true) - 1)
end
