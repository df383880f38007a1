-- Ends a person's suspension of a CronTask. What fell due before does not fire.
-- flags: allow-oom
-- args: uid
-- uses: now cron suspension
-- Returns false if there was none, or the suspension (see suspend_cron.lua).
local field = A.uid .. '/suspended'
local found = redis.call('HGET', K.crons, field)
if not found then return false end
local ended = suspension_end(found, now)
redis.call('HDEL', K.crons, field)
local cron = read_cron(A.uid)
-- A fire at the very moment at which it ends by itself is not suspended.
if cron then pass_fires(A.uid, cron, ended and math.ceil(ended / 1000) - 1 or math.floor(now / 1000)) end
return not ended and found
