-- Read-out: statistics of a queue by the minute, hour or day, and what was not added to them yet.
-- flags: no-writes
-- keys: tallies points point_tasks
-- args: task step places minutes since until_ms most
--       task: '' = every task; step: m, h or d, of so many minutes, in a ring of so many places
--       since, until_ms: '' = as far back as there are points, and now; most: points of a task
-- reply: now first last tallies ...
-- uses: now
-- now: ms; first, last: numbers of the points asked for; tallies: see tallies.lua; then per task with
-- points {task, point...}, see points.lua.
local function number_at(ms)
  return math.floor(ms / 60000 / tonumber(A.minutes))
end

-- Of a task: a place whose number is not the one asked for is of another turn.
local function points_of(task, first, last)
  local found = {task}
  if first > last then return found end
  local fields = {}
  for number = first, last do
    fields[#fields + 1] = A.step .. number % tonumber(A.places) .. '/' .. task
  end
  for i, point in ipairs(redis.call('HMGET', K.points, unpack(fields))) do
    local number = point and string.match(point, '^%d+')
    if number == string.format('%.0f', first + i - 1) then found[#found + 1] = point end
  end
  return found
end

local newest = number_at(now)
local last = newest
if A.until_ms ~= '' then last = math.min(newest, number_at(tonumber(A.until_ms))) end
local first = math.max(last - tonumber(A.most), newest - tonumber(A.places)) + 1
if A.since ~= '' then first = math.max(first, number_at(tonumber(A.since))) end

local found = {now, first, last, redis.call('GET', K.tallies) or ''}
local tasks = {A.task}
if A.task == '' then
  tasks = redis.call('ZRANGE', K.point_tasks, 0, -1)
  tasks[#tasks + 1], tasks[#tasks + 2] = '(all)', '(others)'
end
for _, task in ipairs(tasks) do
  local points = points_of(task, first, last)
  if points[2] then found[#found + 1] = points end
end
return found
