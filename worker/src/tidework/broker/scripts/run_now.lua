-- Enqueues a manual run of a CronTask: outside of the watermark and the concurrency policy, but
-- counted as an active run. With a term, a nonce that ran already is refused.
-- keys: crons
-- args: term uid nonce job_id body priority note
-- uses: now reads writes record waiting tallies unique index progress finish cancel known insert fence cron
-- seldom: fires points
-- Returns {'stale', stored term} or {'ok', 1 if enqueued}.
local last
if A.term ~= '' then
  local newer = fence(tonumber(A.term))
  if newer then return {'stale', newer} end
  last = redis.call('HGET', K.crons, A.uid .. '/run_now')
  if last == A.nonce then
    count('known')
    flush()
    return {'ok', 0}
  end
end
local inserted = insert(A.job_id, A.body, tonumber(A.priority), '', A.uid, false, '')
-- A CronTask that is not admitted, or gone, has no record that would ever be forgotten.
if inserted and redis.call('HGET', K.crons, A.uid .. '/fingerprint') then
  redis.call('HINCRBY', K.crons, A.uid .. '/by_hand', 1)
  S.note_run(A.uid, A.job_id, 'h', now, A.note, true)
end
-- A copy that comes after another nonce leaves that one be, or that would run once more.
if A.term ~= '' and (inserted or not last) then write_cron(A.uid, 'run_now', A.nonce) end
write_tallies()
wake()
flush()
return {'ok', inserted and 1 or 0}
