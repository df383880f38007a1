-- Stores what a worker says of itself and forgets those not seen for long.
-- flags: allow-oom
-- keys: presence seen
-- args: incarnation document ttl_ms
-- uses: now absent
-- Returns the number forgotten.
-- A worker that has left, its presence empty, does not come back: this beat is late.
if redis.call('HGET', K.presence, A.incarnation) ~= '' then
  redis.call('HSET', K.presence, A.incarnation, A.document)
  redis.call('ZADD', K.seen, now, A.incarnation)
end
return forget_absent(tonumber(A.ttl_ms))
