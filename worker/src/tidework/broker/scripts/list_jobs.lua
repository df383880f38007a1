-- Read-out: a page of job ids of one state.
-- flags: no-writes
-- keys: ready scheduled leases succeeded dead cancelled
-- args: state start limit
-- Returns ids, one more than asked for if the list goes on.
local start = tonumber(A.start)
local stop = start + tonumber(A.limit)
if A.state == 'ready' then return redis.call('ZRANGE', K.ready, start, stop) end
if A.state == 'scheduled' then return redis.call('ZRANGE', K.scheduled, start, stop) end
if A.state == 'running' then return redis.call('ZRANGE', K.leases, start, stop) end
return redis.call('ZREVRANGE', K[A.state], start, stop)
