-- Read-out: workers with presence.
-- flags: no-writes
-- keys: presence seen
-- uses: now cordon
-- Returns {now ms, then groups of: incarnation, seen ms, document, who keeps it from claiming: 0
-- nobody, 1 the autoscaler, 2 a person, 3 both}.
local found = {now}
local seen = redis.call('ZRANGE', K.seen, 0, -1, 'WITHSCORES')
for i = 1, #seen, 2 do
  local document = redis.call('HGET', K.presence, seen[i])
  if document and document ~= '' then -- else it has left
    local by_person, until_ms = cordon_of(seen[i])
    found[#found + 1] = seen[i]
    found[#found + 1] = tonumber(seen[i + 1])
    found[#found + 1] = document
    found[#found + 1] = (by_person and 2 or 0) + (until_ms > now and 1 or 0)
  end
end
return found
