-- Read-out: lengths and counters.
-- flags: no-writes
-- keys: leases succeeded dead cancelled counters
-- reply: scheduled ready running succeeded dead cancelled documents oldest_age paused ...
-- uses: now reads record waiting documents oldest
-- oldest_age: ms; paused: '' or since when (ms) and why; then counter, value...
local found = {redis.call('ZCARD', K.scheduled), redis.call('ZCARD', K.ready),
  redis.call('ZCARD', K.leases), redis.call('ZCARD', K.succeeded), redis.call('ZCARD', K.dead),
  redis.call('ZCARD', K.cancelled), documents(), oldest_age(),
  redis.call('HGET', K.meta, 'paused') or ''}
for _, value in ipairs(redis.call('HGETALL', K.counters)) do found[#found + 1] = value end
return found
