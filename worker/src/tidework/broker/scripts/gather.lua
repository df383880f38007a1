-- Read-out: the load of a queue, for the autoscaler.
-- flags: no-writes
-- keys: leases holders services counters
-- args: horizon_ms
-- uses: now reads record waiting documents oldest
-- Returns {now ms, backlog, due soon, in flight, oldest age ms, next due ms (-1 none), enqueued,
-- {worker, leases...}, {task, seconds in ms...}, 1 if paused}.
local until_score = (now + tonumber(A.horizon_ms)) * 10 + 9
local due = redis.call('ZCOUNT', K.scheduled, '-inf', now * 10 + 9)
local soon = redis.call('ZCOUNT', K.scheduled, now * 10 + 10, until_score)
return {now, documents() + redis.call('ZCARD', K.ready) + due, soon, redis.call('ZCARD', K.leases),
  oldest_age(), earliest_due() or -1, tonumber(redis.call('HGET', K.counters, 'enqueued')) or 0,
  redis.call('HGETALL', K.holders), redis.call('HGETALL', K.services),
  is_paused() and 1 or 0}
