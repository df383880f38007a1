-- keys: jobs records details history tombstones succeeded dead cancelled
-- Retention by time and by number, oldest end first, a bounded number per call.
-- An id pruned within ten minutes of its end leaves a tombstone: enqueue stays idempotent.
local TOMBSTONE_MS = 600000
-- More are removed in a call than can be made in one, so that they do not pile up.
local TOMBSTONES_PER_JOB = 10

local function forget(ended, id, ended_at)
  if ended ~= K.succeeded then S.remove_from_index(id, load(id)) end
  take_out(ended, id)
  drop(K.jobs, id)
  drop(K.records, id)
  drop(K.details, id)
  drop(K.history, id)
  forget_progress(id)
  if ended_at + TOMBSTONE_MS > now then place(K.tombstones, ended_at + TOMBSTONE_MS, id) end
end

-- As forget(), of the first `number` that succeeded: there are as many as there is work, and to forget
-- them one by one would cost an exchange of a hundred jobs 13 instead of 10 us for each.
local function forget_succeeded(oldest, number)
  local ids, tombs, n = {}, {}, 0
  for i = 1, number do
    local id, until_ms = oldest[2 * i - 1], oldest[2 * i] + TOMBSTONE_MS
    ids[i] = id
    if until_ms > now then
      tombs[n + 1], tombs[n + 2] = text(until_ms), id
      n = n + 2
    end
  end
  redis.call('ZREMRANGEBYRANK', K.succeeded, 0, number - 1)
  send('HDEL', K.jobs, ids)
  send('HDEL', K.records, ids)
  for _, key in ipairs({K.details, K.history}) do
    if redis.call('EXISTS', key) == 1 then send('HDEL', key, ids) end
  end
  if has_progress() then send('HDEL', K.progress, ids) end -- of a worker of before they were known
  send('ZADD', K.tombstones, tombs)
end

local function prune(limit, keep_succeeded_ms, keep_dead_ms, keep_count)
  flush()
  local old = redis.call('ZCOUNT', K.tombstones, '-inf', text(now))
  if old > 0 then
    redis.call('ZREMRANGEBYRANK', K.tombstones, 0, math.min(old, TOMBSTONES_PER_JOB * limit) - 1)
  end
  local pruned = 0
  for _, kind in ipairs({{K.succeeded, keep_succeeded_ms}, {K.cancelled, keep_succeeded_ms},
    {K.dead, keep_dead_ms}}) do
    local ended, keep_ms = unpack(kind)
    local size = redis.call('ZCARD', ended)
    local surplus = size - keep_count
    if surplus > 0 or (size > 0 and redis.call('ZCOUNT', ended, '-inf', text(now - keep_ms)) > 0) then
      local oldest = redis.call('ZRANGE', ended, 0, limit - pruned - 1, 'WITHSCORES')
      local number = 0
      for i = 1, #oldest, 2 do
        local ended_at = tonumber(oldest[i + 1])
        if number >= surplus and ended_at + keep_ms > now then break end
        number = number + 1
        if ended ~= K.succeeded then forget(ended, oldest[i], ended_at) end
        -- Dead letters that had to go for their number: upkeep.py sounds the alarm.
        if ended == K.dead and ended_at + keep_ms > now then count('dead_dropped') end
      end
      if ended == K.succeeded then forget_succeeded(oldest, number) end
      pruned = pruned + number
    end
    if pruned >= limit then break end
  end
  count('pruned', pruned)
  return pruned
end
