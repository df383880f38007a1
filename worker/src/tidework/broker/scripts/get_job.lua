-- Read-out: one job.
-- flags: no-writes
-- keys: jobs details history progress tombstones
-- args: id
-- reply: state body priority attempt deliveries losses releases cancel due changed started token cron detail unique history progress
-- uses: reads record
-- Or it returns false; of a job that was deleted within ten minutes of its end the ms until which that
-- is known. body: task + zero byte + envelope; due: ms, -1 = held; changed, started: ms, 0 = not yet;
-- unique: the key; progress: see fragments/progress.lua; texts that there are not: ''.
local body = redis.call('HGET', K.jobs, A.id)
if not body then
  local until_ms = redis.call('ZSCORE', K.tombstones, A.id)
  return until_ms and tonumber(until_ms) or false
end
local r = load(A.id)
if not r then return false end
local names = {[RUNNING] = 'running', [SUCCEEDED] = 'succeeded', [DEAD] = 'dead',
  [CANCELLED] = 'cancelled'}
local state = names[r.state]
local available = r.available
if not state then
  local score = tonumber(redis.call('ZSCORE', K.scheduled, A.id))
  state = score and 'scheduled' or 'ready'
  if score == HELD then available = -1 end
end
return {state, body, r.priority, r.attempt, r.deliveries, r.losses, r.releases, r.cancel,
  available, r.changed, r.started, r.token, r.cron, redis.call('HGET', K.details, A.id) or '',
  string.sub(r.unique, 2), redis.call('HGET', K.history, A.id) or '',
  redis.call('HGET', K.progress, A.id) or ''}
