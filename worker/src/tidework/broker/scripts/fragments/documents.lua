-- keys: inbox intake
-- Documents not yet validated; markers, which only wake, are none. They come into an empty inbox.
local function documents()
  local inbox, last = redis.call('LLEN', K.inbox), -1
  while inbox > 0 and redis.call('LINDEX', K.inbox, last) == '!' do
    inbox, last = inbox - 1, last - 1
  end
  local intake = redis.call('LLEN', K.intake)
  if intake > 0 and intake <= 16 then
    for _, raw in ipairs(redis.call('LRANGE', K.intake, 0, -1)) do
      if raw == '!' then intake = intake - 1 end
    end
  end
  return inbox + intake
end
