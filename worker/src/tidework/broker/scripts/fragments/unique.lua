-- keys: uniques unique_ttls replacing jobs spans
-- Unique keys: each names the job that holds it. With a ttl it is held for that time, whatever
-- becomes of the job; else until it ends, or starts.
-- A job that replaces a running one is held until that one has ended; `replacing` links the two:
-- after/<old> = new, before/<new> = old.

local function holder_of(key)
  local holder = redis.call('HGET', K.uniques, key)
  local over = holder and tonumber(redis.call('ZSCORE', K.unique_ttls, key))
  if not holder or (over and over <= now) then return nil end
  return holder
end

local function hold_key(id, mode, ttl_ms, key)
  redis.call('HSET', K.uniques, key, id)
  if mode == 't' then
    redis.call('ZADD', K.unique_ttls, now + ttl_ms, key)
    redis.call('ZADD', K.spans, now, 'u' .. key)
  elseif redis.call('ZREM', K.unique_ttls, key) == 1 then
    redis.call('ZREM', K.spans, 'u' .. key)
  end
end

-- Only if it still names this job.
local function free_key(id, unique)
  local key = string.sub(unique, 2)
  if redis.call('HGET', K.uniques, key) == id then redis.call('HDEL', K.uniques, key) end
end

local function let_go(id)
  local began = score_of(K.spans, 'j' .. id)
  stop_waiting(id)
  local r = load(id)
  r.available = math.max(now, r.available)
  r.changed = now
  save(id, r)
  wait_until(id, r.priority, r.available, began, true)
end

local function link(old, new)
  redis.call('HSET', K.replacing, 'after/' .. old, new, 'before/' .. new, old)
end

local function end_unique(id, unique)
  if string.sub(unique, 1, 1) ~= 't' then free_key(id, unique) end
  local old = redis.call('HGET', K.replacing, 'before/' .. id)
  if old then redis.call('HDEL', K.replacing, 'before/' .. id, 'after/' .. old) end
  local new = redis.call('HGET', K.replacing, 'after/' .. id)
  if new then
    redis.call('HDEL', K.replacing, 'after/' .. id, 'before/' .. new)
    let_go(new)
  end
end
