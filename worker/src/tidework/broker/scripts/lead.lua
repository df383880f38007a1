-- Leadership without Kubernetes: a holder with an expiry, kept with the term that it led to.
-- Becoming leader raises the term. A holder whose term was raised over it leads no more.
-- flags: allow-oom
-- keys: leader term
-- args: holder ttl_ms
-- Returns the term, or -1 if the caller does not lead.
local led = redis.call('GET', K.leader)
local term = redis.call('GET', K.term) or '0'
-- More than anybody has taken: the server's clock was set back. Its holder renews it in time.
if led and redis.call('PTTL', K.leader) > 2 * tonumber(A.ttl_ms) then
  redis.call('PEXPIRE', K.leader, A.ttl_ms)
end
if led then
  if led ~= term .. ' ' .. A.holder then return -1 end
  redis.call('PEXPIRE', K.leader, A.ttl_ms)
  return tonumber(term)
end
term = redis.call('INCR', K.term)
redis.call('SET', K.leader, term .. ' ' .. A.holder, 'PX', A.ttl_ms)
return term
