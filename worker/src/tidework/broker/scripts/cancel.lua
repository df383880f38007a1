-- Cancels a waiting job; asks for it of a running one.
-- flags: allow-oom
-- keys: jobs
-- args: id
-- uses: now reads writes record waiting unique index progress finish cancel
-- seldom: fires
-- Returns 'cancelled', 'requested', 'finished' or 'unknown'.
local answer = cancel(A.id)
count('cancel_requests')
wake()
flush()
return answer
