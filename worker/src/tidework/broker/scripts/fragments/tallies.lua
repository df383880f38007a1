-- keys: tallies
-- What happens to jobs, counted by task: gathered while a script runs, and written down with the minute
-- in one line per task. A line costs less than to add each number to where it is kept, which is done
-- for very many lines at once (points.lua). What a repeated request does not do again it does not
-- count again: tally() stands beside what it counts.
--   <minute since the epoch> <task> <name>:<number>...
--   e enqueued  s succeeded  f failed attempts  r retried  d dead  l lost  g released  c cancelled
--   w<bucket> claims by how long the job was due;  W: ms of that in all
--   x<bucket> attempts by how long they ran;  X: us of that in all
local NO_TASK = '(none)' -- of a document that did not validate
local MOST_TALLIES = 32768 -- bytes
local SHORT = 1e14 -- a number that Lua itself writes out in full

local tallies = {}
local function tally(task, name, by)
  local numbers = tallies[task]
  if not numbers then
    numbers = {}
    tallies[task] = numbers
  end
  numbers[name] = (numbers[name] or 0) + (by or 1)
end

local function write_tallies()
  local lines, n = {}, 0
  local minute = math.floor(now / 60000)
  for task, numbers in pairs(tallies) do
    lines[n + 1], lines[n + 2], lines[n + 3] = minute, ' ', task
    n = n + 3
    for name, number in pairs(numbers) do
      lines[n + 1], lines[n + 2], lines[n + 3], lines[n + 4] = ' ', name, ':',
        number < SHORT and number or text(number)
      n = n + 4
    end
    n = n + 1
    lines[n] = '\n'
  end
  if n > 0 and redis.call('APPEND', K.tallies, table.concat(lines)) > MOST_TALLIES then S.add_tallies() end
end
