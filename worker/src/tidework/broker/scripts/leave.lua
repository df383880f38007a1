-- A worker ends in order.
-- flags: allow-oom
-- keys: presence seen replies
-- args: incarnation
redis.call('HDEL', K.presence, A.incarnation)
redis.call('HDEL', K.replies, A.incarnation)
redis.call('ZREM', K.seen, A.incarnation)
return 1
