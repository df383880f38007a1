-- Turns validated documents into jobs and refused ones into dead letters. Whoever removes a
-- document's bytes from intake first decides; another caller's copy is left alone.
-- A job whose unique key is held is dropped and counted, or a dead letter where it asks for an error.
-- keys: intake
-- args: accepted rejected more ...
--       accepted x (raw, id, body, priority, due ms, unique), then
--       rejected x (raw, id, error, fingerprint)
-- uses: now reads writes record waiting unique index progress finish cancel known insert
-- Returns up to `more` further documents, moved from the inbox to intake; markers are dropped.
local DEFAULT_PRIORITY = 5

-- raw: 1 if the document did not even validate; unique: as in its record
local function refuse(id, body, raw, unique, detail, fingerprint)
  put(K.jobs, id, body)
  count('rejected')
  local r = fresh(DEFAULT_PRIORITY, now)
  r.raw = raw
  r.unique = unique
  finish(id, r, DEAD, detail, fingerprint)
end

-- An id that the document does not name itself belongs to one request only: if it is known,
-- this is a copy of that request, and what it finds is another document with the same bytes.
local function is_copy(id, body, raw)
  return is_known(id) and string.sub(body, -#raw) ~= raw
end

local at, ids = A.rest, {}
for i = 1, tonumber(A.accepted) do ids[i] = ARGV[at + 6 * i - 5] end
expect(ids)
for _ = 1, tonumber(A.accepted) do
  if not is_copy(ARGV[at + 1], ARGV[at + 2], ARGV[at])
    and redis.call('LREM', K.intake, 1, ARGV[at]) > 0 then
    local holder = insert(ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 4], '', false,
      ARGV[at + 5])
    if type(holder) == 'string' and string.sub(ARGV[at + 5], 2, 2) == 'e' then
      local text = 'its unique key is held by job ' .. holder
      local mode, _, _, key = read_unique(ARGV[at + 5])
      refuse(ARGV[at + 1], ARGV[at + 2], 0, mode .. key, '{"type":"UniqueConflictError","message":"' .. text
        .. '","cause":"unique"}', 'UniqueConflictError')
    end
  end
  at = at + 6
end
for _ = 1, tonumber(A.rejected) do
  if not is_known(ARGV[at + 1])
    and redis.call('LREM', K.intake, 1, ARGV[at]) > 0 then
    refuse(ARGV[at + 1], '\0' .. ARGV[at], 1, '', ARGV[at + 2], ARGV[at + 3])
  end
  at = at + 4
end
local moved = {}
for _ = 1, tonumber(A.more) do
  local raw = redis.call('LMOVE', K.inbox, K.intake, 'RIGHT', 'RIGHT')
  if not raw then break end
  if raw == '!' then
    redis.call('LREM', K.intake, -1, raw)
  else
    moved[#moved + 1] = raw
  end
end
wake()
flush()
return moved
