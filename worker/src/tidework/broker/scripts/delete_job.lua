-- Deletes a job: one that waits is cancelled by it, one that has ended is forgotten before its time.
-- flags: allow-oom
-- keys: jobs
-- args: id
-- uses: now reads writes record waiting progress tallies prune
-- seldom: unique index finish fires cancel points
-- Returns 'deleted', 'running' (cancel it first) or 'unknown'. The id stays known for ten minutes.
local ENDED_IN = {[SUCCEEDED] = K.succeeded, [DEAD] = K.dead, [CANCELLED] = K.cancelled}
local r = load(A.id)
if not r then return 'unknown' end
if r.state == RUNNING then return 'running' end
if r.state == WAITING then
  S.cancel(A.id)
  wake()
  flush()
  r = load(A.id)
end
forget(ENDED_IN[r.state], A.id, r.changed)
count('purged')
write_tallies()
flush()
return 'deleted'
