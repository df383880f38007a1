-- Gives leadership up, if it is still the caller's.
-- flags: allow-oom
-- keys: leader
-- args: holder
if redis.call('GET', K.leader) == A.holder then redis.call('DEL', K.leader) end
return 1
