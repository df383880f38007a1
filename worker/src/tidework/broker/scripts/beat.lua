-- Stores what a worker says of itself, and its stacks if somebody asked for them, and forgets
-- workers not seen for long.
-- flags: allow-oom
-- keys: presence seen
-- args: incarnation document ttl_ms answered stacks
-- uses: now cordon asked stacks absent
-- Returns {number forgotten, number of the request for stacks that waits for an answer, or 0}.
-- A worker that has left, its presence empty, does not come back: this beat is late.
local waiting = 0
if redis.call('HGET', K.presence, A.incarnation) ~= '' then
  redis.call('HSET', K.presence, A.incarnation, A.document)
  redis.call('ZADD', K.seen, now, A.incarnation)
  local asked, answered, at = stack_requests(A.incarnation)
  local number = tonumber(A.answered)
  if number > answered and number <= asked then
    answered, at = number, now
    note_stacks(A.incarnation, asked, answered, at)
    redis.call('HSET', K.stacks, A.incarnation, A.answered .. ' ' .. A.stacks)
  elseif asked > 0 and asked == answered and math.abs(now - at) >= KEEP_STACKS_MS then
    forget_stacks(A.incarnation)
  end
  if asked > answered then waiting = asked end
end
return {forget_absent(tonumber(A.ttl_ms)), waiting}
