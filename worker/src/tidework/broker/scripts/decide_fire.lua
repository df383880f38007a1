-- Decides due instants under a term: advances each watermark strictly and writes one verdict.
-- A resend of the last instant decided gets the same verdict.
-- keys: crons
-- args: term ...
--       groups of: uid, fingerprint, fire, verdict wanted, policy, max runs ('' = no bound),
--       job id, body, priority, due ms (due_at())
-- uses: now reads writes record waiting tallies unique index progress finish cancel known insert fence cron suspension
-- seldom: fires points
-- Returns {'stale', stored term} or {'ok', {verdict or 'stale_fire' | 'changed' | 'suspended' |
-- 'exhausted'...}}.
local GROUP = 10

-- The verdict of a fire that may run: enqueued, held by Replace, or skipped by Forbid.
local function enqueue_run(uid, fire, policy, job_id, body, priority, due_ms)
  local active = policy ~= 'Allow' and active_runs(uid) or {}
  local hold = false
  if #active > 0 and policy == 'Forbid' then return 'skipped_overlap' end
  if #active > 0 and policy == 'Replace' then
    for _, id in ipairs(active) do cancel(id) end
    hold = #active_runs(uid) > 0
  end
  local is_new = insert(job_id, body, tonumber(priority), due_ms, uid, hold, '')
  if is_new and hold then write_cron(uid, 'held', job_id) end
  write_cron(uid, 'fire', fire, 'job', job_id)
  S.note_run(uid, job_id, 's', fire * 1000, '', is_new)
  return 'enqueued'
end

-- True if a person has it suspended, who has the word here as spec.suspend has it in the document: what
-- falls due meanwhile, or was due and not decided before, gets no verdict. By its own time: the clock of
-- the scheduler may be ahead.
local function is_suspended(uid, cron, fire)
  if cron.suspended == '' then return false end
  local ended = suspension_end(cron.suspended, math.max(now, fire * 1000))
  if not ended then
    pass_fires(uid, cron, math.max(fire, math.floor(now / 1000)))
    return true
  end
  redis.call('HDEL', K.crons, uid .. '/suspended')
  local last = math.ceil(ended / 1000) - 1
  pass_fires(uid, cron, last)
  return fire <= last
end

local function decide(uid, fingerprint, fire, verdict, policy, max_runs, ...)
  local cron = read_cron(uid)
  if not cron or cron.fingerprint ~= fingerprint then return 'changed' end
  if tonumber(fire) <= tonumber(cron.watermark) then
    if cron.decided == fire then
      count('known')
      return cron.verdict
    end
    return 'stale_fire'
  end
  if is_suspended(uid, cron, tonumber(fire)) then return 'suspended' end
  if verdict == 'enqueued' then
    if max_runs ~= '' and cron.enqueued >= tonumber(max_runs) then return 'exhausted' end
    verdict = enqueue_run(uid, fire, policy, ...)
  end
  if verdict ~= 'enqueued' then
    S.note_no_run(uid, verdict, fire, cron.verdict == verdict and cron.decided or nil)
  end
  write_cron(uid, 'watermark', fire, 'decided', fire, 'verdict', verdict)
  redis.call('HINCRBY', K.crons, uid .. '/' .. verdict, 1)
  return verdict
end

local newer = fence(tonumber(A.term))
if newer then return {'stale', newer} end
local answers, ids = {}, {}
for i = A.rest + 6, #ARGV, GROUP do ids[#ids + 1] = ARGV[i] end
expect(ids)
for i = A.rest, #ARGV, GROUP do
  answers[#answers + 1] = decide(unpack(ARGV, i, i + GROUP - 1))
end
write_tallies()
wake()
flush()
return {'ok', answers}
