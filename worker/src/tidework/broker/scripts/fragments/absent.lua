-- keys: presence seen replies
-- Workers that were not seen for long: nothing of them stays. Needs cordon and stacks.
local function forget_absent(ttl_ms)
  local gone = redis.call('ZRANGEBYSCORE', K.seen, '-inf', now - ttl_ms, 'LIMIT', 0, 100)
  for _, incarnation in ipairs(gone) do
    redis.call('HDEL', K.presence, incarnation)
    redis.call('HDEL', K.replies, incarnation)
    redis.call('ZREM', K.seen, incarnation)
    undo_cordon(incarnation)
    forget_stacks(incarnation)
  end
  return #gone
end
