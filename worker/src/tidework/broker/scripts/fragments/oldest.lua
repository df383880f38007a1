-- The longest wait of a job that could run now, ms.
local function oldest_ready()
  local best_id, best_at, best_priority
  for priority = 0, 9 do
    local found = redis.call('ZRANGEBYSCORE', K.ready, priority * BY_PRIORITY,
      '(' .. string.format('%.0f', (priority + 1) * BY_PRIORITY), 'WITHSCORES', 'LIMIT', 0, 1)
    if found[1] then
      local at = tonumber(found[2]) % BY_PRIORITY
      if not best_at or at < best_at then
        best_id, best_at, best_priority = found[1], at, priority
      end
    end
  end
  return best_id, best_at, best_priority
end

local function oldest_age()
  local _, at = oldest_ready()
  local due = earliest_due()
  if due and due <= now and (not at or due < at) then at = due end
  if not at then return 0 end
  return math.max(0, now - at)
end
