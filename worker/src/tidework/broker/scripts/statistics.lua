-- Read-out: statistics of a queue by the minute, hour or day, and what was not added to them yet.
-- flags: no-writes
-- keys: tallies points point_tasks
-- args: task step places minutes since until_ms most
--       task: '' = every task that was counted since the first point asked for; step: m, h or d, of so
--       many minutes, in a ring of so many places; since, until_ms: '' = as far back as there are
--       points, and now; most: points of a task
-- reply: now first last tallies ...
-- uses: now
-- now: ms; first, last: numbers of the points asked for; tallies: see tallies.lua; then per task {task,
-- what lies in the place of each of these points}, see points.lua. What is in a place may be of another
-- turn: its reader sees to that, and Redis is busy for a third of the time.
local minutes, places = tonumber(A.minutes), tonumber(A.places)

local function number_at(ms)
  return math.floor(ms / 60000 / minutes)
end

local newest = number_at(now)
local last = newest
if A.until_ms ~= '' then last = math.min(newest, number_at(tonumber(A.until_ms))) end
local first = math.max(last - tonumber(A.most), newest - places) + 1
if A.since ~= '' then first = math.max(first, number_at(tonumber(A.since))) end

local found = {now, first, last, redis.call('GET', K.tallies) or ''}
if first > last then return found end
local tasks = {A.task}
if A.task == '' then
  tasks = redis.call('ZRANGEBYSCORE', K.point_tasks, string.format('%.0f', first * minutes), '+inf')
  tasks[#tasks + 1], tasks[#tasks + 2] = '(all)', '(others)'
end
local prefixes = {}
for number = first, last do prefixes[#prefixes + 1] = A.step .. number % places .. '/' end
for _, task in ipairs(tasks) do
  local fields = {}
  for i, prefix in ipairs(prefixes) do fields[i] = prefix .. task end
  found[#found + 1] = {task, unpack(redis.call('HMGET', K.points, unpack(fields)))}
end
return found
