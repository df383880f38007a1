-- keys: inbox meta spans
-- Putting jobs where they wait, and waking one worker that blocks on the inbox.
local new_earliest = false
local ready_left -- how many jobs are ready; nil: not known

local function make_ready(id, priority, available)
  ready_left = nil
  place(K.ready, priority * BY_PRIORITY + available, id)
end

-- `spans` has what is held or waits for a span of time instead of until an instant, by when that
-- began (set_back.lua): 'j' and a job's id, 'u' and a unique key, 'o' and the key of a once block.
local function begin_span(id)
  place(K.spans, now, 'j' .. id)
end

local first_due -- nil: not known, false: none

local function make_scheduled(id, priority, available)
  place(K.scheduled, available * 10 + priority, id)
  if first_due ~= nil then first_due = math.min(first_due or available, available) end
end

local function unschedule(id)
  take_out(K.scheduled, id)
  take_out(K.spans, 'j' .. id)
  first_due = nil
end

local function earliest_due()
  if first_due == nil then
    flush()
    local first = redis.call('ZRANGE', K.scheduled, 0, 0, 'WITHSCORES')
    local score = tonumber(first[2])
    first_due = score and score < HELD and math.floor(score / 10)
  end
  return first_due or nil
end

local paused
local function is_paused()
  if paused == nil then paused = redis.call('HEXISTS', K.meta, 'paused') == 1 end
  return paused
end

local function count_ready()
  if ready_left == nil then
    flush()
    ready_left = redis.call('ZCARD', K.ready)
  end
  return ready_left
end

-- While the queue is paused nobody is woken for work that nobody may claim.
local function wake()
  flush()
  if (new_earliest or count_ready() > 0) and redis.call('EXISTS', K.inbox) == 0
      and not is_paused() then
    redis.call('LPUSH', K.inbox, '!')
  end
end
