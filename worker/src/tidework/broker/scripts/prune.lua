-- Deletes jobs that ended longer ago than retention, or beyond its number, and what is left of
-- workers that no other worker forgot.
-- flags: allow-oom
-- keys: jobs
-- args: batch keep_succeeded_ms keep_dead_ms keep_count keep_presence_ms
-- uses: now count prune absent
-- Returns the number of jobs.
local pruned = prune(tonumber(A.batch), tonumber(A.keep_succeeded_ms), tonumber(A.keep_dead_ms),
  tonumber(A.keep_count))
forget_absent(tonumber(A.keep_presence_ms))
write_counts()
return pruned
