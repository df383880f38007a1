-- keys: onces once_ttls records spans
-- Blocks of code that are to be done once per key. `onces` says of a key that its block is done, or
-- which job is at it, under which lease: a mark that counts for as long as that lease stands.
-- `once_ttls` says when the key is forgotten, and when to look whether a mark still counts.
local ONCE_DONE = 'done'
local ONCE_LOOK_MS = 3600000

local function holds_lease(id, token)
  local packed = stored(K.records, id)
  local r = packed and unpack_record(packed)
  return r and r.state == RUNNING and r.token == token
end

-- ONCE_DONE, '<job id> <token>', or nil where nothing counts.
local function once_mark(key)
  local mark = stored(K.onces, key)
  if not mark then return nil end
  if mark == ONCE_DONE then
    return (score_of(K.once_ttls, key) or 0) > now and mark or nil
  end
  local id, token = string.match(mark, '^(%S+) (%S+)$')
  return holds_lease(id, token) and mark or nil
end

local function mark_once(key, mark, for_ms)
  put(K.onces, key, mark)
  place(K.once_ttls, now + for_ms, key)
  place(K.spans, now, 'o' .. key)
end

local function forget_once(key)
  drop(K.onces, key)
  take_out(K.once_ttls, key)
  take_out(K.spans, 'o' .. key)
end

local function prune_onces(limit)
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', K.once_ttls, '-inf', now, 'LIMIT', 0, limit)) do
    if once_mark(key) then
      place(K.once_ttls, now + ONCE_LOOK_MS, key)
      place(K.spans, now, 'o' .. key)
    else
      forget_once(key)
    end
  end
end
