-- keys: stack_requests
-- Requests for the stacks of a worker are numbered: the last one made, the last one answered, and
-- when that was (ms). One that waits for its answer serves whoever asks meanwhile.
local function stack_requests(incarnation)
  local found = redis.call('HGET', K.stack_requests, incarnation) or ''
  local asked, answered, at = string.match(found, '^(%d+) (%d+) (%d+)$')
  return tonumber(asked) or 0, tonumber(answered) or 0, tonumber(at) or 0
end

local function are_stacks_asked(incarnation)
  local asked, answered = stack_requests(incarnation)
  return asked > answered
end
