-- Work that time alone moves: due jobs, and when leases run out (reap.lua).
local function promote(limit)
  local first = earliest_due()
  if not first or first > now then return 0 end
  flush()
  local due = redis.call('ZRANGEBYSCORE', K.scheduled, '-inf', now * 10 + 9, 'WITHSCORES',
    'LIMIT', 0, limit)
  for i = 1, #due, 2 do
    local score = tonumber(due[i + 1])
    stop_waiting(due[i])
    make_ready(due[i], score % 10, math.floor(score / 10))
  end
  return #due / 2
end

local first_expiry -- nil: not known, false: none

local function earliest_expiry()
  if first_expiry == nil then
    flush()
    local first = redis.call('ZRANGE', K.leases, 0, 0, 'WITHSCORES')
    first_expiry = tonumber(first[2]) or false
  end
  return first_expiry or nil
end

-- Leases were given that run out at `expiry`; nil: they were moved, or will be taken back.
local function note_leases(expiry)
  if not expiry then
    first_expiry = nil
  elseif first_expiry ~= nil then
    first_expiry = math.min(first_expiry or expiry, expiry)
  end
end

-- ms until the next due job or expiry, -1 if nothing is known.
local function next_due()
  local at = earliest_due()
  local expiry = earliest_expiry()
  if expiry then
    expiry = math.max(expiry, reaping_held_until())
    if not at or expiry < at then at = expiry end
  end
  if not at then return -1 end
  return math.max(0, at - now)
end
