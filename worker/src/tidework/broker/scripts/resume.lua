-- Ends a pause.
-- flags: allow-oom
-- keys: meta
-- uses: now reads writes record waiting
-- Returns 1, or 0 if it was not paused.
local ended = redis.call('HDEL', K.meta, 'paused')
wake()
return ended
