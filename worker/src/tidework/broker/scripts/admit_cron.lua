-- The record of a CronTask under a term. A new one, one of another schedule, or a reset starts
-- with `start` as watermark, which never moves back.
-- keys: crons
-- args: term uid fingerprint start reset
-- uses: reads writes fence cron
-- Returns {'ok', cron...} or {'stale', stored term}.
local newer = fence(tonumber(A.term))
if newer then return {'stale', newer} end
local cron = read_cron(A.uid)
if not cron then
  write_cron(A.uid, 'fingerprint', A.fingerprint, 'watermark', A.start)
elseif A.reset == '1' or cron.fingerprint ~= A.fingerprint then
  local watermark = math.max(tonumber(cron.watermark), tonumber(A.start))
  write_cron(A.uid, 'fingerprint', A.fingerprint, 'watermark', watermark)
end
return {'ok', cron_reply(A.uid, read_cron(A.uid))}
