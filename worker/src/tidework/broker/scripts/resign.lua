-- Gives leadership up, if it is still the caller's.
-- flags: allow-oom
-- keys: leader
-- args: holder
local led = redis.call('GET', K.leader)
if led and string.match(led, '^%d+ (.*)$') == A.holder then redis.call('DEL', K.leader) end
return 1
