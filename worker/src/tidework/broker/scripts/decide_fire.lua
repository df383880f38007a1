-- Decides one due instant under a term: advances the watermark strictly and writes one verdict.
-- keys: crons
-- args: term uid fingerprint fire wanted policy max_runs job_id body priority available_ms
-- uses: now count record waiting finish cancel fence cron
-- Returns {'stale', stored term} or {'ok', verdict or 'stale_fire' | 'changed' | 'exhausted'}.
local stored = fence(tonumber(A.term))
if stored then return {'stale', stored} end
local cron = read_cron(A.uid)
if not cron or cron.fingerprint ~= A.fingerprint then return {'ok', 'changed'} end
local fire = tonumber(A.fire)
if fire <= tonumber(cron.watermark) then
  if tonumber(cron.decided) == fire then return {'ok', cron.verdict} end
  return {'ok', 'stale_fire'}
end
local verdict = A.wanted
if verdict == 'enqueued' then
  if A.max_runs ~= '' and cron.enqueued >= tonumber(A.max_runs) then return {'ok', 'exhausted'} end
  local active = active_runs(A.uid)
  if #active > 0 and A.policy == 'Forbid' then
    verdict = 'skipped_overlap'
  else
    local hold = false
    if #active > 0 and A.policy == 'Replace' then
      for _, id in ipairs(active) do cancel(id) end
      hold = #active_runs(A.uid) > 0
    end
    local available = A.available_ms == '' and now or tonumber(A.available_ms)
    if insert(A.job_id, A.body, tonumber(A.priority), available, A.uid, hold) and hold then
      write_cron(A.uid, 'held', A.job_id)
    end
    write_cron(A.uid, 'fire', A.fire, 'job', A.job_id)
  end
end
write_cron(A.uid, 'watermark', A.fire, 'decided', A.fire, 'verdict', verdict)
redis.call('HINCRBY', K.crons, A.uid .. '/' .. verdict, 1)
wake()
write_counts()
return {'ok', verdict}
