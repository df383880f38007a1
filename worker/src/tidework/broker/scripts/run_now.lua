-- Enqueues a manual run of a CronTask: outside of the watermark and the concurrency policy, but
-- counted as an active run. With a term, a nonce that ran already is refused.
-- keys: crons
-- args: term uid nonce job_id body priority
-- uses: now count record waiting fence cron
-- Returns {'stale', stored term} or {'ok', 1 if enqueued}.
if A.term ~= '' then
  local stored = fence(tonumber(A.term))
  if stored then return {'stale', stored} end
  if redis.call('HGET', K.crons, A.uid .. '/run_now') == A.nonce then return {'ok', 0} end
  write_cron(A.uid, 'run_now', A.nonce)
end
local inserted = insert(A.job_id, A.body, tonumber(A.priority), now, A.uid, false)
wake()
write_counts()
return {'ok', inserted and 1 or 0}
