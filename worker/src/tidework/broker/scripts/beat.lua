-- Stores what a worker says of itself and forgets those not seen for long.
-- flags: allow-oom
-- keys: presence seen
-- args: incarnation document ttl_ms
-- uses: now absent
-- Returns the number forgotten.
redis.call('HSET', K.presence, A.incarnation, A.document)
redis.call('ZADD', K.seen, now, A.incarnation)
return forget_absent(tonumber(A.ttl_ms))
