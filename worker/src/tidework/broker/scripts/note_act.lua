-- Keeps what a person did with the acts of the namespace; the oldest beyond a bound go.
-- flags: allow-oom
-- keys: acts
-- args: text most
-- Returns 1, or 0 if the same text is there already.
if redis.call('ZSCORE', K.acts, A.text) then return 0 end
local newest = redis.call('ZREVRANGE', K.acts, 0, 0, 'WITHSCORES')
redis.call('ZADD', K.acts, string.format('%.0f', (tonumber(newest[2]) or 0) + 1), A.text)
local surplus = math.min(redis.call('ZCARD', K.acts) - A.most, 100)
if surplus > 0 then
  redis.call('ZREM', K.acts, unpack(redis.call('ZRANGE', K.acts, 0, surplus - 1)))
end
return 1
