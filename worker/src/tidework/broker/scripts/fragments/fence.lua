-- keys: term
-- A write of a leader carries its term: a lower one than stored is refused, a higher one stored.
local function fence(term)
  local highest = tonumber(redis.call('GET', K.term)) or 0
  if term < highest then
    count('stale_terms')
    flush()
    return highest
  end
  if term > highest then redis.call('SET', K.term, term) end
  return nil
end
