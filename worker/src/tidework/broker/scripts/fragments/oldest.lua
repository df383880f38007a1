-- The longest wait of a job that could run now, ms.
local function oldest_ready()
  flush()
  local best_id, best_at, best_score
  local found = redis.call('ZRANGE', K.ready, 0, 0, 'WITHSCORES')
  while found[1] do
    local score = tonumber(found[2])
    local at = score % BY_PRIORITY
    if not best_at or at < best_at then best_id, best_at, best_score = found[1], at, found[2] end
    local next_priority = math.floor(score / BY_PRIORITY) + 1
    found = redis.call('ZRANGEBYSCORE', K.ready, text(next_priority * BY_PRIORITY), '+inf',
      'WITHSCORES', 'LIMIT', 0, 1)
  end
  return best_id, best_at, best_score
end

local function oldest_age()
  local _, at = oldest_ready()
  local due = earliest_due()
  if due and due <= now and (not at or due < at) then at = due end
  if not at then return 0 end
  return math.max(0, now - at)
end
