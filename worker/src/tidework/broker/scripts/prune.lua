-- Deletes jobs that ended longer ago than retention, or beyond its number.
-- flags: allow-oom
-- keys: jobs
-- args: batch keep_succeeded_ms keep_dead_ms keep_count
-- uses: now count prune
-- Returns their number.
local pruned = prune(tonumber(A.batch), tonumber(A.keep_succeeded_ms), tonumber(A.keep_dead_ms),
  tonumber(A.keep_count))
write_counts()
return pruned
