-- A worker ends in order. Its last reply stays for as long as that of one that died: a request
-- of it that was sent twice may still be on its way. Its presence is empty as long.
-- flags: allow-oom
-- keys: presence seen
-- args: incarnation
-- uses: now cordon stacks
redis.call('HSET', K.presence, A.incarnation, '')
redis.call('ZADD', K.seen, now, A.incarnation)
undo_cordon(A.incarnation)
forget_stacks(A.incarnation)
return 1
