-- Suspends a CronTask, until a person resumes it or until a moment. Its document is left as it is.
-- flags: allow-oom
-- keys: crontasks crons
-- args: uid until_ms by reason
--       until_ms: 0 = until it is resumed; by, reason: without tabs
-- uses: now suspension
-- Returns false if it is not known, or {1, or 0 if another suspension holds already, which stays;
-- '<since ms> TAB <until ms> TAB <by> TAB <reason>' of the one that holds}.
if redis.call('HEXISTS', K.crontasks, A.uid) == 0 then return false end
local field = A.uid .. '/suspended'
local wanted = table.concat({A.until_ms, A.by, A.reason}, '\t')
local found = redis.call('HGET', K.crons, field)
if found and not suspension_end(found, now) then
  return {string.match(found, '\t(.*)$') == wanted and 1 or 0, found}
end
local suspension = string.format('%.0f\t', now) .. wanted
redis.call('HSET', K.crons, field, suspension)
return {1, suspension}
