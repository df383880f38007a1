-- Cancels a waiting job; asks for it of a running one.
-- flags: allow-oom
-- keys: jobs
-- args: id
-- uses: now count record waiting finish cancel
-- Returns 'cancelled', 'requested', 'finished' or 'unknown'.
local answer = cancel(A.id)
wake()
write_counts()
return answer
