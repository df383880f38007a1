-- Read-out: a page of what people did, the newest first.
-- flags: no-writes
-- keys: acts
-- args: before limit
--       before: the number of an act, '' = from the newest on
-- Returns groups of: text, number. Numbers have no gaps, so places follow from counts.
local first = A.before == '' and 0 or redis.call('ZCOUNT', K.acts, A.before, '+inf')
return redis.call('ZREVRANGE', K.acts, first, first + A.limit - 1, 'WITHSCORES')
