-- keys: history
-- How deliveries of a job ended, a line each (history.py): of all that did not succeed, the newest.
local MOST_LINES = 20

local function note_end(id, r, letter, cause)
  local line = table.concat({letter, r.attempt, text(r.started), text(now), worker_of(r.token), cause},
    '\t')
  local lines = stored(K.history, id)
  if lines then
    local _, breaks = string.gsub(lines, '\n', '')
    if breaks + 1 >= MOST_LINES then lines = string.match(lines, '\n(.*)$') end
    line = lines .. '\n' .. line
  end
  put(K.history, id, line)
end
