-- A running job asks whether it is the one to do a block.
-- flags: allow-oom
-- args: key id token
-- uses: now reads writes record once
-- Returns 'first' (also if asked again), 'done', 'pending' while the lease of a job that is at it
-- stands, or 'lost' if the caller's own does not.
if not holds_lease(A.id, A.token) then return 'lost' end
local own = A.id .. ' ' .. A.token
local mark = once_mark(A.key)
if mark == ONCE_DONE then return 'done' end
if mark and mark ~= own then return 'pending' end
if not mark then mark_once(A.key, own, ONCE_LOOK_MS) end
flush()
return 'first'
