-- Makes a queue known: writes the layout on first sight.
-- flags: allow-oom
-- keys: meta
-- args: layout
-- Returns {layout of the queue, least layout that a client has to serve, durability or ''}.
redis.call('HSETNX', K.meta, 'layout', A.layout)
redis.call('HSETNX', K.meta, 'least_layout', A.layout)
local found = redis.call('HMGET', K.meta, 'layout', 'least_layout', 'durability')
return {tonumber(found[1]), tonumber(found[2]), found[3] or ''}
