-- keys: jobs leases details succeeded dead cancelled crons runs unknown unknown_until
-- The end of jobs, and what follows from it for the CronTask whose run it was.
local ENDED = {[SUCCEEDED] = 'succeeded', [DEAD] = 'dead', [CANCELLED] = 'cancelled'}
local TALLIED = {[SUCCEEDED] = 's', [DEAD] = 'd', [CANCELLED] = 'c'}

-- A job whose worker did not know its task: when it is due, and until when it waits for a worker that
-- does. Meanwhile it asks for no worker (gather.lua). While it is claimed the latter is negative: the
-- wait began with the first of its releases, however often it is looked at.
local function note_unknown(id, due, until_ms)
  place(K.unknown, due, id)
  place(K.unknown_until, until_ms, id)
end

local function unknown_until(id)
  local until_ms = score_of(K.unknown_until, id)
  return until_ms and math.abs(until_ms)
end

local function note_unknown_claimed(id)
  local until_ms = unknown_until(id)
  if not until_ms then return end
  take_out(K.unknown, id)
  place(K.unknown_until, -until_ms, id)
end

-- Such a job was given back at least once.
local function forget_unknown(id, r)
  if r.releases == 0 then return end
  take_out(K.unknown, id)
  take_out(K.unknown_until, id)
end

local function drop_lease(id, r)
  forget_unknown(id, r)
  take_out(K.leases, id)
  count_leases(worker_of(r.token), -1)
  r.token = ''
end

local function active_runs(cron)
  local ids = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', K.runs, '[' .. cron .. '|', '(' .. cron .. '}')) do
    ids[#ids + 1] = string.sub(member, #cron + 2)
  end
  return ids
end

-- Replace held the next run until the last old one ended.
local function end_run(cron, id)
  redis.call('ZREM', K.runs, cron .. '|' .. id)
  local next_run = redis.call('HGET', K.crons, cron .. '/held')
  if not next_run then return end
  if next_run == id then
    redis.call('HDEL', K.crons, cron .. '/held')
  elseif #active_runs(cron) == 1 then
    redis.call('HDEL', K.crons, cron .. '/held')
    let_go(next_run)
  end
end

-- fingerprint: of the error of a dead job
local function finish(id, r, state, detail, fingerprint)
  local was_running = r.state == RUNNING
  local earlier_attempts = r.deliveries - (was_running and 1 or 0)
  if r.state == WAITING then forget_unknown(id, r) end
  r.state = state
  r.changed = now
  r.fingerprint = fingerprint or ''
  if r.task == '' then r.task = task_of(stored(K.jobs, id)) end
  save(id, r)
  add_to_index(id, r)
  place(K[ENDED[state]], now, id)
  if detail ~= '' then
    put(K.details, id, detail)
  elseif earlier_attempts > 0 then
    drop(K.details, id) -- an error of theirs
  end
  if state ~= DEAD then forget_progress(id) end -- a replay goes on where it stood
  count(ENDED[state])
  tally(r.task == '' and NO_TASK or r.task, TALLIED[state])
  if r.cron ~= '' then
    S.note_run_end(id, r, ENDED[state], was_running)
    end_run(r.cron, id)
  end
  if r.unique ~= '' then end_unique(id, r.unique) end
end

-- A job that ran was due. If that lies ahead of now, the clock was set back meanwhile.
local function wait_again(id, r, available)
  r.state = WAITING
  r.available = available
  r.changed = now
  save(id, r)
  wait_until(id, r.priority, available, now)
end

-- Pauses after a job's first, second and any later loss, in tenths of a lease (model/losses.py): what
-- kills its process may pass, a shortage of memory for instance.
local LOSS_PAUSES = {1, 10, 50}

-- waited_ms: part of the pause that is over already. True if that made the job a dead letter.
local function lose(id, r, detail, poison_cap, fingerprint, waited_ms)
  count('lost')
  tally(r.task, 'l')
  r.losses = r.losses + 1
  r.attempt = r.attempt - 1
  if r.losses >= poison_cap then
    finish(id, r, DEAD, detail, fingerprint)
    return true
  end
  put(K.details, id, detail)
  local tenths = LOSS_PAUSES[math.min(r.losses, #LOSS_PAUSES)]
  local pause_ms = math.floor(tonumber(A.lease_ms) * tenths / 10) - waited_ms
  wait_again(id, r, pause_ms > 0 and now + pause_ms or math.min(r.available, now))
  return false
end
