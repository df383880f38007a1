-- keys: inbox intake
-- Documents not yet validated; the marker that only wakes is none.
local function documents()
  local inbox = redis.call('LLEN', K.inbox)
  if inbox > 0 and redis.call('LINDEX', K.inbox, -1) == '!' then inbox = inbox - 1 end
  local intake = redis.call('LLEN', K.intake)
  if intake > 0 and intake <= 16 then
    for _, raw in ipairs(redis.call('LRANGE', K.intake, 0, -1)) do
      if raw == '!' then intake = intake - 1 end
    end
  end
  return inbox + intake
end
