-- Enqueues past instants of a CronTask that a person asks for, each at most once: not one whose run is
-- known by its id, is in the history, or was backfilled before, the newest 1,000 of these. Verdicts and
-- watermark stay as they are; the leader decides what lies behind the watermark.
-- keys: crons
-- args: uid policy note ...
--       groups of: fire, job id, body, priority
-- uses: now reads writes record waiting tallies unique index progress finish cancel known insert cron
-- seldom: fires points
-- Returns false if there is no record, or per group 'enqueued', 'known', 'undecided' (the leader does),
-- or 'busy': a run goes on, and under this policy there is one at a time.
local GROUP = 4
local MOST_BYTES = 1000 * 11 -- of instants, ten digits and a comma each

local cron = read_cron(A.uid)
if not cron then return false end
local field = A.uid .. '/backfilled'
local done = redis.call('HGET', K.crons, field) or ''

local function is_done(mark, job_id)
  return string.find(done, mark, 1, true) or is_known(job_id) or S.has_run(A.uid, job_id)
end

local function backfill(fire, job_id, body, priority)
  if tonumber(fire) > tonumber(cron.watermark) then return 'undecided' end
  local mark = string.format('%010.0f,', tonumber(fire))
  if is_done(mark, job_id) then
    count('known')
    return 'known'
  end
  if A.policy ~= 'Allow' and #active_runs(A.uid) > 0 then return 'busy' end
  insert(job_id, body, tonumber(priority), '', A.uid, false, '')
  S.note_run(A.uid, job_id, 'b', fire * 1000, A.note, true)
  done = string.sub(done .. mark, -MOST_BYTES)
  return 'enqueued'
end

local ids, answers = {}, {}
for i = A.rest + 1, #ARGV, GROUP do ids[#ids + 1] = ARGV[i] end
expect(ids)
for i = A.rest, #ARGV, GROUP do
  answers[#answers + 1] = backfill(unpack(ARGV, i, i + GROUP - 1))
end
if done ~= '' then redis.call('HSET', K.crons, field, done) end
write_tallies()
wake()
flush()
return answers
