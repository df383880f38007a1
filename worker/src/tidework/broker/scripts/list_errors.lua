-- Read-out: the most frequent errors of dead letters.
-- flags: no-writes
-- keys: errors index details
-- args: limit
-- Returns groups of: fingerprint, number of dead letters, ms of the oldest and of the newest end, id and
-- error of the newest.
local reply = {}
local function edge(command, first, last)
  local member = redis.call(command, K.index, first, last, 'LIMIT', 0, 1)[1]
  return string.match(member, '|(%d+)|([^|]*)$')
end
local found = redis.call('ZREVRANGE', K.errors, 0, tonumber(A.limit) - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local low, high = '[error:' .. found[i] .. '|', '(error:' .. found[i] .. '|~'
  local oldest = edge('ZRANGEBYLEX', low, high)
  local newest, id = edge('ZREVRANGEBYLEX', high, low)
  for _, value in ipairs({found[i], tonumber(found[i + 1]), tonumber(oldest), tonumber(newest), id,
    redis.call('HGET', K.details, id) or ''}) do reply[#reply + 1] = value end
end
return reply
