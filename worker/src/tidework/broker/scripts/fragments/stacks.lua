-- keys: stack_requests stacks
-- Writing down requests for stacks (asked.lua), and forgetting them with their answers.
local KEEP_STACKS_MS = 60000

local function note_stacks(incarnation, asked, answered, at)
  redis.call('HSET', K.stack_requests, incarnation,
    string.format('%.0f %.0f %.0f', asked, answered, at))
end

local function forget_stacks(incarnation)
  redis.call('HDEL', K.stack_requests, incarnation)
  redis.call('HDEL', K.stacks, incarnation)
end
