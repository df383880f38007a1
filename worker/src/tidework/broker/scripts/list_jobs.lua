-- Read-out: a page of job ids, of one state or of one entry of the index.
-- flags: no-writes
-- keys: ready scheduled leases succeeded dead cancelled index records
-- args: state entry task since until_ms cursor limit
--       entry: 'task:<task>|<state letter>|' or 'error:<fingerprint>|' or '' for the whole state
--       task: '' = any; of jobs that succeeded, which are not in the index
--       since, until_ms: '' = no bound; of the end, or of the due time of scheduled jobs
--       cursor: '<score>:<id>' as returned, '' = from the start
-- uses: reads record
-- Returns {cursor or '' at the end, ids...}: waiting and running in their order, ended newest first.
-- Of one task it looks at so many jobs at most, and may return fewer than there are before the cursor.
local MOST_LOOKED_AT = 1000
local limit = tonumber(A.limit)

local function page_of_index()
  local low = '[' .. A.entry .. (A.since == '' and '' or string.format('%013.0f', tonumber(A.since)))
  local high = '(' .. A.entry .. '~'
  if A.until_ms ~= '' then high = '(' .. A.entry .. string.format('%013.0f~', tonumber(A.until_ms)) end
  if A.cursor ~= '' then
    local ms, id = string.match(A.cursor, '^(%d+):(.*)$')
    high = '(' .. A.entry .. string.format('%013.0f|', tonumber(ms)) .. id
  end
  local found = redis.call('ZREVRANGEBYLEX', K.index, high, low, 'LIMIT', 0, limit + 1)
  local reply = {''}
  for i = 1, math.min(#found, limit) do
    reply[i + 1] = string.match(found[i], '|([^|]*)$')
  end
  if #found > limit then
    local ms, id = string.match(found[limit], '|(%d+)|([^|]*)$')
    reply[1] = string.format('%.0f:', tonumber(ms)) .. id
  end
  return reply
end

local SOURCES = {ready = K.ready, scheduled = K.scheduled, running = K.leases,
  succeeded = K.succeeded, dead = K.dead, cancelled = K.cancelled}
local source = SOURCES[A.state]
local newest_first = A.state ~= 'ready' and A.state ~= 'scheduled' and A.state ~= 'running'

-- Scores of scheduled jobs are tenths of ms, with the priority as last digit.
local function bound(ms, last)
  if A.state ~= 'scheduled' then return ms end
  return string.format('%.0f', tonumber(ms) * 10 + (last and 9 or 0))
end

local function number_before(score)
  if newest_first then return redis.call('ZCOUNT', source, '(' .. score, '+inf') end
  return redis.call('ZCOUNT', source, '-inf', '(' .. score)
end

-- By bytes, as sorted sets order members of equal score; Lua's own comparison follows the locale.
local function comes_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- How many jobs come before the place that `id` had with `score`: it may have moved, or gone.
local function number_up_to(score, id)
  if redis.call('ZSCORE', source, id) == score then
    return redis.call(newest_first and 'ZREVRANK' or 'ZRANK', source, id) + 1
  end
  local low = number_before(score)
  local high = low + redis.call('ZCOUNT', source, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call(newest_first and 'ZREVRANGE' or 'ZRANGE', source, middle, middle)[1]
    local before = newest_first and comes_before(id, found) or not newest_first and comes_before(found, id)
    if before then low = middle + 1 else high = middle end
  end
  return low
end

local function start_of_page()
  if A.cursor == '' then
    local edge = newest_first and A.until_ms or A.since
    return edge == '' and 0 or number_before(bound(edge, false))
  end
  return number_up_to(string.match(A.cursor, '^(%d+):(.*)$'))
end

local function end_of_range()
  local edge = newest_first and A.since or A.until_ms
  if edge == '' then return redis.call('ZCARD', source) end
  if newest_first then return redis.call('ZCOUNT', source, edge, '+inf') end
  return redis.call('ZCOUNT', source, '-inf', bound(edge, true))
end

local function page_of_state()
  local start, stop = start_of_page(), end_of_range()
  local count = math.min(limit, stop - start)
  if count <= 0 then return {''} end
  local found = redis.call(newest_first and 'ZREVRANGE' or 'ZRANGE', source, start, start + count - 1,
    'WITHSCORES')
  local reply = {''}
  for i = 1, #found, 2 do reply[#reply + 1] = found[i] end
  if start + count < stop then reply[1] = found[#found] .. ':' .. found[#found - 1] end
  return reply
end

local function page_of_task()
  local start, stop = start_of_page(), end_of_range()
  local looked_at = math.min(MOST_LOOKED_AT, stop - start)
  if looked_at <= 0 then return {''} end
  local found = redis.call('ZREVRANGE', source, start, start + looked_at - 1, 'WITHSCORES')
  local ids = {}
  for i = 1, #found, 2 do ids[#ids + 1] = found[i] end
  look_up(K.records, ids)
  local reply, last = {''}, nil
  for i, id in ipairs(ids) do
    local packed = stored(K.records, id)
    if packed and unpack_record(packed).task == A.task then
      if #reply > limit then
        reply[1] = last
        return reply
      end
      reply[#reply + 1] = id
      last = found[2 * i] .. ':' .. id
    end
  end
  if start + looked_at < stop then reply[1] = found[#found] .. ':' .. found[#found - 1] end
  return reply
end

if A.entry ~= '' then return page_of_index() end
return A.task ~= '' and page_of_task() or page_of_state()
