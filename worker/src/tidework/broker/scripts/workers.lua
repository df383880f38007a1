-- Read-out: workers with presence.
-- flags: no-writes
-- keys: presence seen
-- Returns groups of: incarnation, seen ms, document.
local found = {}
local seen = redis.call('ZRANGE', K.seen, 0, -1, 'WITHSCORES')
for i = 1, #seen, 2 do
  local document = redis.call('HGET', K.presence, seen[i])
  if document and document ~= '' then -- else it has left
    found[#found + 1] = seen[i]
    found[#found + 1] = tonumber(seen[i + 1])
    found[#found + 1] = document
  end
end
return found
