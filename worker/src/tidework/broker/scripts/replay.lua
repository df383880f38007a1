-- Makes dead letters ready again, with all their attempts. A document that never validated goes back
-- to the inbox, to be validated anew; one of which only the beginning was kept stays where it is.
-- A full server does it: what was acknowledged is not new work, and more is freed than is added.
-- flags: allow-oom
-- keys: jobs records details dead
-- args: ...          ids
-- uses: now reads writes record waiting tallies unique index progress finish
-- seldom: fires
-- Returns one of 'replayed', 'unknown', 'not_dead', 'unique' (its key is held), 'cut' per id.

local function replay_document(id)
  local _, raw = split_body(stored(K.jobs, id))
  redis.call('LPUSH', K.inbox, raw)
  for _, key in ipairs({K.jobs, K.records, K.details}) do drop(key, id) end
end

local function replay_job(id, r)
  r.attempt, r.losses, r.releases, r.cancel, r.fingerprint = 0, 0, 0, 0, ''
  drop(K.details, id)
  if r.cron ~= '' then
    redis.call('ZADD', K.runs, 0, r.cron .. '|' .. id)
    S.note_run_end(id, r, '', false)
  end
  wait_again(id, r, now)
end

-- A key that is held for a time only is not taken again: that time began with the enqueue.
local function takes_key(id, r)
  local mode, key = string.sub(r.unique, 1, 1), string.sub(r.unique, 2)
  if mode == '' or mode == 't' then return true end
  if holder_of(key) then return false end
  hold_key(id, mode, nil, key)
  return true
end

local function replay(id)
  local r = load(id)
  if not r then return 'unknown' end
  if r.state ~= DEAD then return 'not_dead' end
  if r.raw == 2 then return 'cut' end
  if not takes_key(id, r) then return 'unique' end
  remove_from_index(id, r)
  take_out(K.dead, id)
  count('replayed')
  if r.raw == 1 then replay_document(id) else replay_job(id, r) end
  return 'replayed'
end

local answers = {}
for i = A.rest, #ARGV do answers[#answers + 1] = replay(ARGV[i]) end
count('replay_requests')
wake()
flush()
return answers
