-- What the autoscaler has decided for a queue, for people to read.
-- flags: allow-oom
-- keys: scaling decisions
-- args: term sequence document is_step
-- uses: now reads writes fence late
-- is_step: 1 if it changed something, so that it stays among the last decisions. What was said last is
-- not said again: its reply may have been lost.
-- Returns {'stale', stored term} or {'ok', 1}.
local MOST_DECISIONS = 100
local newer = fence(tonumber(A.term))
if newer then return {'stale', newer} end
if is_late('note_scaling', A.term, A.sequence) then return {'ok', 1} end
local latest = redis.call('GET', K.scaling)
if latest and string.sub(latest, string.find(latest, ' ', 1, true) + 1) == A.document then return {'ok', 1} end
local entry = text(now) .. ' ' .. A.document
redis.call('SET', K.scaling, entry)
if A.is_step == '1' then
  redis.call('LPUSH', K.decisions, entry)
  redis.call('LTRIM', K.decisions, 0, MOST_DECISIONS - 1)
end
return {'ok', 1}
