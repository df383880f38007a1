-- Cancels a waiting job; asks for it of a running one.
-- flags: allow-oom
-- keys: jobs
-- args: id
-- uses: now reads writes record waiting tallies unique index progress finish cancel
-- seldom: fires points
-- Returns 'cancelled', 'requested', 'finished' or 'unknown'.
local answer = cancel(A.id)
count('cancel_requests')
write_tallies()
wake()
flush()
return answer
