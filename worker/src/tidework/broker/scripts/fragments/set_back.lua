-- keys: spans unknown unknown_until scheduled ready records leases seen draining tombstones succeeded dead cancelled unique_ttls once_ttls
-- The server's clock was set back, by so many ms as a time that it has shown lies in front of now.
-- What was said by a span of time keeps what it had left; what was said by an instant is what it says.
-- `spans` knows which of two entries with one due time was which, and when it was said: what was said
-- before the clock went ahead is right again as it is. Other times that no right clock can have
-- written tell it by themselves. All of it in one go: it happens once. Needs index and cordon.
local SOME = 1000
local LONGEST_CORDON_MS = 600000
local LONGEST_TOMBSTONE_MS = 600000

-- Entries whose score lies above a bound, until the loop over them has brought all of them down.
local function above(key, low, high)
  local found, i = {}, 1
  return function()
    i = i + 2
    if i > #found then
      flush()
      found = redis.call('ZRANGEBYSCORE', key, '(' .. text(low), high, 'WITHSCORES', 'LIMIT', 0, SOME)
      i = 1
    end
    return found[i], tonumber(found[i + 1])
  end
end

-- True if the job is due earlier by that.
local function mend_delay(id, score, back)
  local r = stored(K.records, id) and load(id)
  if r then
    r.available = r.available - back
    save(id, r)
  end
  if score < HELD then
    place(K.scheduled, score - back * 10, id)
  end
  local due = score_of(K.unknown, id)
  if due then place(K.unknown, due - back, id) end
  return score < HELD
end

-- Waits for a worker that knows a task: what lies further ahead than the clock was has said so.
local function mend_unknown(back)
  local found = redis.call('ZRANGEBYSCORE', K.unknown_until, '(' .. text(now + back), '+inf', 'WITHSCORES')
  for i = 1, #found, 2 do
    local id, until_ms = found[i], tonumber(found[i + 1])
    local due = math.min(score_of(K.unknown, id), now)
    if score_of(K.scheduled, id) then due = load(id).available end
    place(K.unknown, due, id)
    place(K.unknown_until, math.max(math.min(until_ms - back, now + back), due), id)
  end
end

-- True if a job is due earlier by that.
local function mend_spans(back)
  local is_earlier = false
  local times = {j = K.scheduled, u = K.unique_ttls, o = K.once_ttls}
  for member, at in above(K.spans, now, '+inf') do
    local kind, name = string.sub(member, 1, 1), string.sub(member, 2)
    local score = times[kind] and score_of(times[kind], name)
    if not score then
      take_out(K.spans, member) -- somebody else deleted what it is about
    else
      place(K.spans, math.min(at - back, now), member)
      if kind == 'j' then
        is_earlier = mend_delay(name, score, back) or is_earlier
      else
        place(times[kind], score - back, name)
      end
    end
  end
  return is_earlier
end

-- Nothing is ready before it is due. Ids tell the order, as those of our own sort by time: how long
-- these have waited nobody knows, and a wrong age has workers started for nothing.
local function mend_ready()
  for priority = 0, 9 do
    local first = priority * BY_PRIORITY
    for id in above(K.ready, first + now, '(' .. text(first + BY_PRIORITY)) do
      local r = stored(K.records, id) and load(id)
      if r then
        r.available = now
        save(id, r)
        if score_of(K.unknown, id) then place(K.unknown, now, id) end
      end
      place(K.ready, first + now, id)
    end
  end
end

local function mend_ends(back)
  for _, key in ipairs({K.succeeded, K.dead, K.cancelled}) do
    for id, at in above(key, now, '+inf') do
      local r = load(id)
      local ended_at = math.min(at - back, now)
      if r then
        remove_from_index(id, r)
        r.changed = ended_at
        save(id, r)
        add_to_index(id, r)
      end
      place(key, ended_at, id)
    end
  end
  for id, until_ms in above(K.tombstones, now + LONGEST_TOMBSTONE_MS, '+inf') do
    place(K.tombstones, math.min(until_ms - back, now + LONGEST_TOMBSTONE_MS), id)
  end
end

local function mend_workers(back)
  for worker, at in above(K.seen, now, '+inf') do
    place(K.seen, math.min(at - back, now), worker)
  end
  for _, worker in ipairs(redis.call('ZRANGE', K.draining, 0, -1)) do
    local by_person, until_ms = cordon_of(worker)
    if until_ms - now > LONGEST_CORDON_MS then cordon(worker, by_person, until_ms - back) end
  end
end

-- Leases are as old as the last sign of life at most: all of them move, but by that alone.
local function mend_leases(back)
  flush()
  local leases = redis.call('ZRANGE', K.leases, 0, -1, 'WITHSCORES')
  for i = 1, #leases, 2 do place(K.leases, tonumber(leases[i + 1]) - back, leases[i]) end
  note_leases(nil)
end

local function set_back(back, leases_back)
  if leases_back > 0 then mend_leases(leases_back) end
  local is_earlier = mend_spans(back)
  mend_unknown(back)
  mend_ready()
  mend_ends(back)
  mend_workers(back)
  look_again(is_earlier)
  flush()
end
