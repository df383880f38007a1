-- Stores what a worker says of itself and forgets those not seen for long.
-- flags: allow-oom
-- keys: presence seen replies
-- args: incarnation document ttl_ms
-- uses: now
-- Returns the number forgotten.
redis.call('HSET', K.presence, A.incarnation, A.document)
redis.call('ZADD', K.seen, now, A.incarnation)
local gone = redis.call('ZRANGEBYSCORE', K.seen, '-inf', now - tonumber(A.ttl_ms))
for _, incarnation in ipairs(gone) do
  redis.call('HDEL', K.presence, incarnation)
  redis.call('HDEL', K.replies, incarnation)
  redis.call('ZREM', K.seen, incarnation)
end
return #gone
