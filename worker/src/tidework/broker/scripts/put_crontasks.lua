-- Mirrors the queue's validated CronTasks and forgets the records of those that left.
-- keys: crontasks
-- args: term sequence ...       groups of: uid, document
-- uses: reads writes fence late cron
-- Returns {'stale', stored term} or {'ok', number forgotten}.
local newer = fence(tonumber(A.term))
if newer then return {'stale', newer} end
if is_late('put_crontasks', A.term, A.sequence) then return {'ok', 0} end
local keep = {}
for i = A.rest, #ARGV, 2 do keep[ARGV[i]] = true end
local forgotten = 0
for _, uid in ipairs(redis.call('HKEYS', K.crontasks)) do
  if not keep[uid] then
    forget_cron(uid)
    redis.call('HDEL', K.crontasks, uid)
    forgotten = forgotten + 1
  end
end
for i = A.rest, #ARGV, 2 do redis.call('HSET', K.crontasks, ARGV[i], ARGV[i + 1]) end
return {'ok', forgotten}
