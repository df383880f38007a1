-- What a person's suspension of a CronTask means: field <uid>/suspended of `crons`
-- (suspend_cron.lua). While it holds, fires get no verdict; the watermark passes them.

-- The ms at which it ended, if it is over at `moment`; else nil.
local function suspension_end(suspension, moment)
  local until_ms = tonumber(string.match(suspension, '^%d+\t(%d+)'))
  if until_ms > 0 and until_ms <= moment then return until_ms end
  return nil
end
