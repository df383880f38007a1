-- keys: inbox intake
-- What intake.lua and intake_full.lua do alike.
local DEFAULT_PRIORITY = 5
local WHOLE, CUT = 1, 2 -- documents that did not validate, and whether all of them was kept
local MADE_UP_MS = 600000 -- how long the id of a request stays known: as a tombstone of prune.lua

-- raw: 0, WHOLE or CUT; unique: as in its record
local function refuse(id, body, raw, unique, detail, fingerprint)
  put(K.jobs, id, body)
  count('rejected')
  local r = fresh(DEFAULT_PRIORITY, now)
  r.raw = raw
  r.unique = unique
  finish(id, r, DEAD, detail, fingerprint)
end

-- An id that was made up for a document belongs to one request only: if it is known, this is a copy of
-- that request, and what it finds is another document with the same bytes. An id that the document
-- names itself is its producer's: a known one makes it a copy of that job, and nobody misses it.
local function accept(raw, id, is_named, body, priority, available, spec)
  if (is_named == '0' and is_known(id)) or not remove_document(raw, '') then return end
  local holder = insert(id, body, tonumber(priority), available, '', false, spec)
  if type(holder) == 'string' and string.sub(spec, 2, 2) == 'e' then
    local message = 'its unique key is held by job ' .. holder
    local mode, _, _, key = read_unique(spec)
    refuse(id, body, 0, mode .. key, '{"type":"UniqueConflictError","message":"' .. message
      .. '","cause":"unique"}', 'UniqueConflictError')
  end
end

-- A dead letter, under the id that the document names, if it names one that is free. A copy of the one
-- that is there already is dropped.
local function reject(raw, length, named, made_up, detail, fingerprint)
  if is_known(made_up) or not remove_document(raw, length) then return end
  local id, body = made_up, '\0' .. raw
  if named ~= '' then
    if not is_known(named) then
      id = named
    elseif stored(K.jobs, named) == body then
      count('known')
      return
    end
  end
  refuse(id, body, length == '' and WHOLE or CUT, '', detail, fingerprint)
  -- Also when the letter has gone again, this request was made.
  place(K.tombstones, now + MADE_UP_MS, made_up)
end

local function take_in(at, accepted, rejected)
  local ids = {}
  for i = 1, accepted do ids[i] = ARGV[at + 7 * i - 6] end
  expect(ids)
  for _ = 1, accepted do
    accept(unpack(ARGV, at, at + 6))
    at = at + 7
  end
  for _ = 1, rejected do
    reject(unpack(ARGV, at, at + 5))
    at = at + 6
  end
end

-- Moves up to so many documents from inbox to intake, of so many bytes in all or one more. Markers
-- are dropped.
local function move(most, most_bytes, longest)
  local moved, bytes = {}, 0
  for _ = 1, most do
    if bytes >= most_bytes then break end
    local raw = redis.call('LMOVE', K.inbox, K.intake, 'RIGHT', 'RIGHT')
    if not raw then break end
    if raw == '!' then
      redis.call('LREM', K.intake, -1, raw)
    else
      local size
      moved[#moved + 1], size = hand_out(raw, longest)
      bytes = bytes + size
    end
  end
  return moved
end
