-- keys: stack_requests stacks
-- Requests for the stacks of a worker are numbered: the last one made, the last one answered, and
-- when that was (ms). One that waits for its answer serves whoever asks meanwhile.
local KEEP_STACKS_MS = 60000

local function stack_requests(incarnation)
  local found = redis.call('HGET', K.stack_requests, incarnation) or ''
  local asked, answered, at = string.match(found, '^(%d+) (%d+) (%d+)$')
  return tonumber(asked) or 0, tonumber(answered) or 0, tonumber(at) or 0
end

local function note_stacks(incarnation, asked, answered, at)
  redis.call('HSET', K.stack_requests, incarnation,
    string.format('%.0f %.0f %.0f', asked, answered, at))
end

local function forget_stacks(incarnation)
  redis.call('HDEL', K.stack_requests, incarnation)
  redis.call('HDEL', K.stacks, incarnation)
end
