-- keys: draining
-- Who is kept from claiming, by when that is over. One whom a person cordoned has BY_PERSON on top
-- of what the autoscaler said: that lasts until it is undone, or nothing of the worker is known.
local BY_PERSON = 1e15

-- Returns whether a person cordoned the worker, and until when the autoscaler did (ms, 0: it did not).
local function cordon_of(incarnation)
  local score = tonumber(redis.call('ZSCORE', K.draining, incarnation)) or 0
  if score >= BY_PERSON then return true, score - BY_PERSON end
  return false, score
end

local function cordon(incarnation, by_person, until_ms)
  local score = until_ms > now and until_ms or 0
  if by_person then score = score + BY_PERSON end
  if score == 0 then
    redis.call('ZREM', K.draining, incarnation)
  else
    redis.call('ZADD', K.draining, string.format('%.0f', score), incarnation)
  end
end

-- A person's word ends, the autoscaler's stands.
local function undo_cordon(incarnation)
  local by_person, until_ms = cordon_of(incarnation)
  if by_person then cordon(incarnation, false, until_ms) end
  return by_person, until_ms > now
end
