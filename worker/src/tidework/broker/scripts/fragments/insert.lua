-- keys: jobs runs
-- New jobs: idempotent by id, at most one per unique key.

-- From ms: '' now, with a sign from now on, else Unix time. True behind it if it is a span.
local function due_at(given)
  if given == '' then return now, false end
  if string.find(given, '^[+-]') then return now + tonumber(given), true end
  return tonumber(given), false
end

-- From '<until><on conflict><ttl ms>:<key>'.
local function read_unique(spec)
  return string.match(spec, '^(%l)(%l)(%d*):(.*)$')
end

-- True if the new job has to be held until the old one, told to stop, has ended.
local function replace(old, new)
  local r = load(old)
  if not r or ENDED[r.state] then return false end
  count('replaced')
  if r.state == RUNNING then
    r.cancel = 1
    save(old, r)
    link(old, new)
    return true
  end
  local stopping = redis.call('HGET', K.replacing, 'before/' .. old)
  cancel(old)
  if stopping then link(stopping, new) end
  return stopping ~= false
end

-- True; false for a known id; or the id of the job that holds the unique key.
local function insert(id, body, priority, due, cron, hold, spec)
  if is_known(id) then
    count('known')
    return false
  end
  local unique = ''
  if spec ~= '' then
    local mode, on_conflict, ttl_ms, key = read_unique(spec)
    local holder = holder_of(key)
    if holder and on_conflict ~= 'r' then
      count('deduplicated')
      return holder
    end
    if holder then hold = replace(holder, id) end
    hold_key(id, mode, tonumber(ttl_ms), key)
    unique = mode .. key
  end
  local available, is_span = due_at(due)
  put(K.jobs, id, body)
  count('enqueued')
  tally(task_of(body), 'e')
  if cron ~= '' then redis.call('ZADD', K.runs, 0, cron .. '|' .. id) end
  if cron ~= '' or unique ~= '' then
    local r = fresh(priority, available)
    r.cron = cron
    r.unique = unique
    save(id, r)
  end
  if hold then
    place(K.scheduled, HELD, id)
    if is_span and available > now then place(K.spans, now, 'j' .. id) end
  else
    wait_until(id, priority, available, is_span and now or nil, true)
  end
  return true
end
