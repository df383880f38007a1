-- As intake.lua, on a full server: what was acknowledged is not new work. A document is removed before
-- its job is written, which then needs some bytes more than it did; so further documents are only moved
-- while less than `more` jobs are ready, and the inbox becomes jobs as fast as those are done.
-- flags: allow-oom
-- args: accepted rejected more most_bytes longest ...
-- uses: now reads writes record waiting tallies unique index progress finish cancel known insert large intake
-- seldom: fires points
-- Returns as intake.lua.
take_in(A.rest, tonumber(A.accepted), tonumber(A.rejected))
local more, moved = tonumber(A.more), {}
if more > 0 and count_ready() < more then
  moved = move(more, tonumber(A.most_bytes), tonumber(A.longest))
end
write_tallies()
wake()
flush()
return moved
