-- Leadership without Kubernetes: a holder with an expiry. Becoming leader raises the term.
-- flags: allow-oom
-- keys: leader term
-- args: holder ttl_ms
-- Returns the term, or -1 if another holder leads.
local holder = redis.call('GET', K.leader)
if holder and holder ~= A.holder then return -1 end
redis.call('SET', K.leader, A.holder, 'PX', A.ttl_ms)
if holder then return tonumber(redis.call('GET', K.term)) end
return redis.call('INCR', K.term)
