-- keys: tallies points point_tasks
-- Statistics: a point per task and minute, hour and day. Each step has a ring of so many places, and a
-- place holds '<number of the minute, hour or day> <name>:<number>...' (tallies.lua). The number tells
-- whether a point is still that of its turn, so nothing has to be deleted, whatever the clock does.
--   points       '<m, h or d><place>/<task>'      point_tasks: task by the last minute it was counted in
-- Tasks beyond MOST_TASKS are counted in '(others)', until one of those had nothing for QUIET minutes.
local ALL, OTHERS = '(all)', '(others)'
local STEPS = {{'m', 1, 180}, {'h', 60, 72}, {'d', 1440, 400}} -- letter, minutes, places
local MOST_TASKS, QUIET = 200, 43200

local function forget_points(task)
  local fields = {}
  for _, step in ipairs(STEPS) do
    for place_in_ring = 0, step[3] - 1 do fields[#fields + 1] = step[1] .. place_in_ring .. '/' .. task end
  end
  redis.call('ZREM', K.point_tasks, task)
  send('HDEL', K.points, fields)
end

-- The task, or OTHERS if there is no room for one more.
local function admit(task, minute)
  if not redis.call('ZSCORE', K.point_tasks, task) and redis.call('ZCARD', K.point_tasks) >= MOST_TASKS then
    local quietest = redis.call('ZRANGE', K.point_tasks, 0, 0, 'WITHSCORES')
    if tonumber(quietest[2]) > minute - QUIET then return OTHERS end
    forget_points(quietest[1])
  end
  redis.call('ZADD', K.point_tasks, text(minute), task)
  return task
end

local function add_numbers(numbers, words)
  for name, number in string.gmatch(words, '(%a%d*):(%d+)') do
    numbers[name] = (numbers[name] or 0) + number
  end
end

local function add_to_point(step, minute, task, numbers)
  local number = math.floor(minute / step[2])
  local field = step[1] .. number % step[3] .. '/' .. task
  local found = redis.call('HGET', K.points, field)
  local total = {}
  if found and string.match(found, '^%d+') == text(number) then add_numbers(total, found) end
  local words = {text(number)}
  for name, by in pairs(numbers) do total[name] = (total[name] or 0) + by end
  for name, sum in pairs(total) do words[#words + 1] = name .. ':' .. text(sum) end
  redis.call('HSET', K.points, field, table.concat(words, ' '))
end

-- of_tasks: what was counted within a minute.
local function add_minute(minute, of_tasks)
  local of_rows, all = {}, {}
  for task, words in pairs(of_tasks) do
    local row = admit(task, minute)
    of_rows[row] = of_rows[row] or {}
    for _, each in ipairs(words) do add_numbers(of_rows[row], each) end
  end
  for _, numbers in pairs(of_rows) do
    for name, number in pairs(numbers) do all[name] = (all[name] or 0) + number end
  end
  of_rows[ALL] = all
  for row, numbers in pairs(of_rows) do
    for _, step in ipairs(STEPS) do add_to_point(step, minute, row, numbers) end
  end
end

-- In the order in which it happened: the clock may have been set back.
local function add_tallies()
  local minute, of_tasks
  for line_minute, task, words in string.gmatch(redis.call('GETDEL', K.tallies), '(%d+) (%S+) ([^\n]*)\n') do
    if line_minute ~= minute then
      if minute then add_minute(tonumber(minute), of_tasks) end
      minute, of_tasks = line_minute, {}
    end
    of_tasks[task] = of_tasks[task] or {}
    table.insert(of_tasks[task], words)
  end
  if minute then add_minute(tonumber(minute), of_tasks) end
end
