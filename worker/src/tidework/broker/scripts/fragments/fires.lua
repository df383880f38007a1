-- keys: fires history
-- The last fires and runs of each CronTask: uid -> their number, and a line each, the oldest first
-- (broker/fires.py). A line is written with the verdict, and completed when the run ends. Neighbours that
-- came to no job, with one verdict, share a line.
local MOST_FIRES = 100

-- A run goes by its job's id without the uid; '*' and the fire time is what came to no job.
local function run_name(uid, id)
  if string.sub(id, 1, #uid + 1) == uid .. '-' then return string.sub(id, #uid + 2) end
  return '/' .. id
end

-- Where the line of that name is: its first and last byte.
local function find_line(lines, name)
  local at = string.find(lines, '\n' .. name .. '\t', 1, true)
  if not at then return nil end
  return at + 1, (string.find(lines, '\n', at + 1, true) or #lines + 1) - 1
end

local function replace_line(uid, lines, first, last, line)
  put(K.fires, uid, string.sub(lines, 1, first - 1) .. line .. string.sub(lines, last + 1))
end

local function add_line(uid, line)
  -- By places, not by a pattern: that would go through 10 KB letter by letter.
  local lines = stored(K.fires, uid) or '0'
  local first = string.find(lines, '\n', 1, true) or #lines + 1
  local number = tonumber(string.sub(lines, 1, first - 1)) + 1
  if number > MOST_FIRES then
    number = MOST_FIRES
    first = string.find(lines, '\n', first + 1, true)
  end
  put(K.fires, uid, number .. string.sub(lines, first) .. '\n' .. line)
end

local function has_run(uid, id)
  local lines = stored(K.fires, uid)
  return lines and find_line(lines, run_name(uid, id)) ~= nil
end

-- before: the fire decided last, if its verdict was the same one; else nil.
local function note_no_run(uid, verdict, fire, before)
  local due, lines = text(fire * 1000), stored(K.fires, uid)
  local number, since = 0, due
  local first, last
  if before and lines then first, last = find_line(lines, '*' .. before) end
  if first then
    number, since = string.match(string.sub(lines, first, last), '^[^\t]*\t%l\t[%l_]+\t%d+\t%d+\t(%d+)\t(%d+)')
  end
  local line = table.concat({'*' .. fire, 's', verdict, due, text(now), number + 1, since}, '\t')
    .. '\t0\t0\t0\t\t0\t'
  if first then replace_line(uid, lines, first, last, line) else add_line(uid, line) end
end

-- state: how it ended, '' when a dead letter is made ready again. was_running: when it ended.
local function note_run_end(id, r, state, was_running)
  local lines = stored(K.fires, r.cron)
  local first, last
  if lines then first, last = find_line(lines, run_name(r.cron, id)) end
  if not first then return end -- too many came since, or its CronTask is gone
  local claimed, started, ended = 0, 0, 0
  if state ~= '' then
    local earlier = stored(K.history, id)
    claimed = earlier and string.match(earlier, '^%l\t%d+\t(%d+)') or r.started
    started = was_running and r.started or 0
    ended = r.changed
  end
  local head, note = string.match(string.sub(lines, first, last),
    '^([^\t]*\t%l\t[%l_]+\t%d+\t%d+\t%d+\t%d+\t)%d+\t%d+\t%d+\t%l*\t%d+\t(.*)$')
  local tail = table.concat({text(claimed), text(started), text(ended), state, r.attempt, note}, '\t')
  replace_line(r.cron, lines, first, last, head .. tail)
end

-- kind: 's' of the schedule, 'h' by hand, 'b' a backfill. note: who and why, '' if nobody said so.
-- is_new: false where the record was lost and a fire is decided once more: its job may have ended before.
local function note_run(uid, id, kind, due, note, is_new)
  local name, lines = run_name(uid, id), stored(K.fires, uid)
  if lines and find_line(lines, name) then return end
  local head = {name, kind, 'enqueued', text(due), text(now), 1, text(due)}
  add_line(uid, table.concat(head, '\t') .. '\t0\t0\t0\t\t0\t' .. note)
  local r = not is_new and load(id)
  if r and r.cron == uid and ENDED[r.state] then note_run_end(id, r, ENDED[r.state], true) end
end
