-- Pauses the queue: nothing is claimed from it until it is resumed; what runs goes on.
-- flags: allow-oom
-- keys: meta
-- args: reason
-- uses: now
-- Returns 1, or 0 if it was paused already (the first reason stays).
return redis.call('HSETNX', K.meta, 'paused', string.format('%.0f ', now) .. A.reason)
