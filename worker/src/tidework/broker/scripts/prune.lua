-- Deletes jobs that ended longer ago than retention, or beyond its number, and what is left of
-- workers that no other worker forgot; unique keys and marks of once whose time is over.
-- flags: allow-oom
-- keys: jobs uniques unique_ttls
-- args: batch keep_succeeded_ms keep_dead_ms keep_count keep_presence_ms
-- reply: pruned dead dropped documents
-- uses: now reads writes record progress prune cordon stacks absent once documents
-- seldom: index
-- pruned: number of jobs; dead: dead letters now; dropped: those ever deleted for their number.

-- Keys whose time is over. One that was taken again has a new time, or none.
local function free_unique_keys(limit)
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', K.unique_ttls, '-inf', now, 'LIMIT', 0, limit)) do
    redis.call('HDEL', K.uniques, key)
    redis.call('ZREM', K.unique_ttls, key)
    redis.call('ZREM', K.spans, 'u' .. key)
  end
end

local pruned = prune(tonumber(A.batch), tonumber(A.keep_succeeded_ms), tonumber(A.keep_dead_ms),
  tonumber(A.keep_count))
forget_absent(tonumber(A.keep_presence_ms))
free_unique_keys(tonumber(A.batch))
prune_onces(tonumber(A.batch))
flush()
return {pruned, redis.call('ZCARD', K.dead),
  tonumber(redis.call('HGET', K.counters, 'dead_dropped')) or 0, documents()}
