-- Leadership without Kubernetes: a holder with an expiry, kept with the term that it led to.
-- Becoming leader raises the term. A holder whose term was raised over it leads no more.
-- flags: allow-oom
-- keys: leader term
-- args: holder ttl_ms
-- Returns the term, or -1 if the caller does not lead.
local led = redis.call('GET', K.leader)
local term = redis.call('GET', K.term) or '0'
if led then
  -- More than anybody takes: the server's clock was set back. A holder that lives renews it in time.
  redis.call('PEXPIRE', K.leader, 2 * A.ttl_ms, 'LT')
  if led ~= term .. ' ' .. A.holder then return -1 end
  redis.call('PEXPIRE', K.leader, A.ttl_ms)
  return tonumber(term)
end
term = redis.call('INCR', K.term)
redis.call('SET', K.leader, term .. ' ' .. A.holder, 'PX', A.ttl_ms)
return term
