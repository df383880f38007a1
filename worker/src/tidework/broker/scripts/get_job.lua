-- Read-out: one job.
-- flags: no-writes
-- keys: jobs tombstones
-- args: id
-- reply: state body priority attempt deliveries losses releases cancel due changed started token cron detail unique history progress
-- uses: reads record job
-- Or it returns false; of a job that was deleted within ten minutes of its end the ms until which that
-- is known. body: task + zero byte + envelope; due: ms, -1 = held; changed, started: ms, 0 = not yet;
-- unique: the key; progress: see fragments/progress.lua; texts that there are not: ''.
local whole = redis.call('HGET', K.jobs, A.id)
if not whole then
  local until_ms = redis.call('ZSCORE', K.tombstones, A.id)
  return until_ms and tonumber(until_ms) or false
end
return parts_of_job(A.id, whole)
