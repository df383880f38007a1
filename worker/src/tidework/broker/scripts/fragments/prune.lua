-- keys: jobs records details tombstones succeeded dead cancelled
-- Retention by time and by number, oldest end first, a bounded number per call.
-- An id pruned within ten minutes of its end leaves a tombstone: enqueue stays idempotent.
local TOMBSTONE_MS = 600000
-- More are removed in a call than can be made in one, so that they do not pile up.
local TOMBSTONES_PER_JOB = 10

local function forget(ended, id, ended_at)
  if ended ~= K.succeeded then remove_from_index(id, load(id)) end
  take_out(ended, id)
  drop(K.jobs, id)
  drop(K.records, id)
  drop(K.details, id)
  if ended_at + TOMBSTONE_MS > now then place(K.tombstones, ended_at + TOMBSTONE_MS, id) end
end

local function prune(limit, keep_succeeded_ms, keep_dead_ms, keep_count)
  flush()
  local old = redis.call('ZCOUNT', K.tombstones, '-inf', now)
  if old > 0 then
    redis.call('ZREMRANGEBYRANK', K.tombstones, 0, math.min(old, TOMBSTONES_PER_JOB * limit) - 1)
  end
  local pruned = 0
  for _, kind in ipairs({{K.succeeded, keep_succeeded_ms}, {K.cancelled, keep_succeeded_ms},
    {K.dead, keep_dead_ms}}) do
    local ended, keep_ms = unpack(kind)
    local surplus = redis.call('ZCARD', ended) - keep_count
    if surplus > 0 or redis.call('ZCOUNT', ended, '-inf', now - keep_ms) > 0 then
      local oldest = redis.call('ZRANGE', ended, 0, limit - pruned - 1, 'WITHSCORES')
      for i = 1, #oldest, 2 do
        local ended_at = tonumber(oldest[i + 1])
        if (i + 1) / 2 > surplus and ended_at + keep_ms > now then break end
        forget(ended, oldest[i], ended_at)
        -- Dead letters that had to go for their number: upkeep.py sounds the alarm.
        if ended == K.dead and ended_at + keep_ms > now then count('dead_dropped') end
        pruned = pruned + 1
      end
    end
    if pruned >= limit then break end
  end
  count('pruned', pruned)
  return pruned
end
