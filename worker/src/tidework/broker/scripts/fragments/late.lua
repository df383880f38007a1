-- keys: meta
-- A leader's requests of one kind take effect in the order in which it made them: a copy that comes
-- after a newer one of the same term is late, and does nothing.
local function is_late(kind, term, sequence)
  local field = 'last_' .. kind
  local found = redis.call('HGET', K.meta, field) or ''
  local last_term, last = string.match(found, '^(%d+) (%d+)$')
  if last_term == term and tonumber(last) > tonumber(sequence) then
    count('stale_requests')
    flush()
    return true
  end
  redis.call('HSET', K.meta, field, term .. ' ' .. sequence)
  return false
end
