-- Read-out: what is known of one CronTask's fires.
-- flags: no-writes
-- keys: crons
-- args: uid
-- uses: cron
-- Returns false or the record (see fragments/cron.lua).
local cron = read_cron(A.uid)
if not cron then return false end
return cron_reply(A.uid, cron)
