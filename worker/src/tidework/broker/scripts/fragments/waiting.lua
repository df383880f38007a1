-- keys: inbox meta spans
-- Putting jobs where they wait, and waking one worker that blocks on the inbox. What is known of that
-- is this file's own: whoever changes `ready` or `scheduled` past it says so (note_ready, look_again).
local first_due -- of those that are scheduled; nil: not known, false: none
local new_earliest = false -- one is due before all that workers have heard of
local ready_left -- how many jobs are ready; nil: not known
local some_ready = false -- where their number is not known: there is one at least

local function make_ready(id, priority, available)
  ready_left, some_ready = nil, true
  place(K.ready, priority * BY_PRIORITY + available, id)
end

-- Jobs were put into `ready` by a command for many of them, or, by less than 0, popped.
local function note_ready(by)
  if ready_left then ready_left = ready_left + by end
  if by > 0 then some_ready = true end
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

-- Ready or scheduled? `began`: when that began, of a job that waits for a span of time; nil where it
-- waits until an instant. `spans` has these (set_back.lua): 'j' and a job's id, 'u' and a unique key,
-- 'o' and the key of a once block. is_news: the reply to this call tells no worker when it is due.
local function wait_until(id, priority, available, began, is_news)
  if available <= now then
    make_ready(id, priority, available)
    return
  end
  if is_news then
    local first = earliest_due()
    new_earliest = new_earliest or not first or available < first
  end
  place(K.scheduled, available * 10 + priority, id)
  if first_due ~= nil then first_due = math.min(first_due or available, available) end
  if began then place(K.spans, began, 'j' .. id) end
end

local function stop_waiting(id)
  ready_left, some_ready, first_due = nil, false, nil
  take_out(K.ready, id)
  take_out(K.scheduled, id)
  take_out(K.spans, 'j' .. id)
end

-- Times were moved: nothing of the above is known. is_earlier: some are due earlier than before.
local function look_again(is_earlier)
  ready_left, some_ready, first_due = nil, false, nil
  new_earliest = new_earliest or is_earlier
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
  if (new_earliest or (some_ready and ready_left == nil) or count_ready() > 0)
      and redis.call('EXISTS', K.inbox) == 0 and not is_paused() then
    redis.call('LPUSH', K.inbox, '!')
  end
end
