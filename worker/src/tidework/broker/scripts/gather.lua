-- Read-out: the load of a queue, for the autoscaler.
-- flags: no-writes
-- keys: leases holders services counters unknown unknown_until meta
-- args: horizon_ms
-- reply: now backlog due_soon running oldest_age next_due enqueued leases service_times paused unknown unknown_task announced
-- uses: now reads record waiting documents oldest
-- now, oldest_age: ms; next_due: when, ms, -1 = nothing; leases: {worker, number...}; service_times:
-- {task, ms...}; paused: 1 if so; unknown: jobs of unknown tasks; unknown_task: of one of them; announced:
-- version of the application that was announced last.
-- Jobs whose task no worker knew count in neither backlog nor due soon, until their wait is over.
local until_score = (now + tonumber(A.horizon_ms)) * 10 + 9
local due = redis.call('ZCOUNT', K.scheduled, '-inf', now * 10 + 9)
local soon = redis.call('ZCOUNT', K.scheduled, now * 10 + 10, until_score)
local ready = redis.call('ZCARD', K.ready)

-- Of those whose wait is over all are due, since none is due later than that.
local unknown, task = redis.call('ZCARD', K.unknown), ''
if unknown > 0 then
  local horizon = now + tonumber(A.horizon_ms)
  local function count(from, to)
    return redis.call('ZCOUNT', K.unknown, from, to) - redis.call('ZCOUNT', K.unknown_until, from, to)
  end
  due = due - count(0, now)
  soon = soon - count('(' .. text(now), horizon)
  unknown = unknown - redis.call('ZCOUNT', K.unknown_until, 0, now)
  local record = load(redis.call('ZRANGE', K.unknown_until, -1, -1)[1])
  task = record and record.task or ''
end
return {now, math.max(0, documents() + ready + due), math.max(0, soon), redis.call('ZCARD', K.leases),
  oldest_age(), earliest_due() or -1, tonumber(redis.call('HGET', K.counters, 'enqueued')) or 0,
  redis.call('HGETALL', K.holders), redis.call('HGETALL', K.services),
  is_paused() and 1 or 0, unknown, task, redis.call('HGET', K.meta, 'announced') or ''}
