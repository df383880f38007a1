-- Asks a worker for its stacks: its next renewal, beat, or exchange that claims nothing tells it, a
-- later beat brings them. Nobody can wake one idle worker, so some of them are: each takes a marker
-- and exchanges. Where the inbox is not empty nobody waits at it.
-- flags: allow-oom
-- keys: presence seen inbox
-- args: incarnation
-- uses: now asked stacks
-- Returns the number of the request, 0 if the worker is not known (any more).
local MOST_WOKEN = 10 -- documents.lua tells so many markers from documents
local STALE_MS = 30000

local document = redis.call('HGET', K.presence, A.incarnation)
if not document or document == '' then return 0 end
local asked, answered, at = stack_requests(A.incarnation)
if asked <= answered then
  asked = answered + 1
  note_stacks(A.incarnation, asked, answered, at)
end
if redis.call('EXISTS', K.inbox) == 0 then
  local living = redis.call('ZCOUNT', K.seen, '(' .. string.format('%.0f', now - STALE_MS), '+inf')
  for _ = 1, math.min(living, MOST_WOKEN) do redis.call('LPUSH', K.inbox, '!') end
end
return asked
