-- What every client of the queue has to know of its TaskQueue, under a term.
-- flags: allow-oom
-- keys: meta
-- args: term sequence durability
-- uses: reads writes fence late
-- Returns {'stale', stored term} or {'ok', 1}.
local newer = fence(tonumber(A.term))
if newer then return {'stale', newer} end
if is_late('configure', A.term, A.sequence) then return {'ok', 1} end
redis.call('HSET', K.meta, 'durability', A.durability)
return {'ok', 1}
