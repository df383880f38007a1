-- Asks a worker for its stacks: its next renewal or beat tells it, a later beat brings them.
-- flags: allow-oom
-- keys: presence
-- args: incarnation
-- uses: stacks
-- Returns the number of the request, 0 if the worker is not known (any more).
local document = redis.call('HGET', K.presence, A.incarnation)
if not document or document == '' then return 0 end
local asked, answered, at = stack_requests(A.incarnation)
if asked <= answered then
  asked = answered + 1
  note_stacks(A.incarnation, asked, answered, at)
end
return asked
