-- keys: index errors
-- Dead and cancelled jobs by task, and dead ones by the fingerprint of their error, in the order of
-- their end. Jobs that succeeded are not in it: they come and go too fast (list_jobs.lua).
--   task:<task>|<state letter>|<end ms, 13 digits>|<id>      error:<fingerprint>|<end ms>|<id>
-- `errors` counts the dead letters of each fingerprint.

local function index_members(id, r)
  if r.state == SUCCEEDED then return {} end
  local tail = string.format('|%013.0f|%s', r.changed, id)
  local found = {}
  if r.task ~= '' then found[1] = 'task:' .. r.task .. '|' .. string.char(r.state) .. tail end
  if r.state == DEAD then found[#found + 1] = 'error:' .. r.fingerprint .. tail end
  return found
end

local function add_to_index(id, r)
  for _, member in ipairs(index_members(id, r)) do place(K.index, 0, member) end
  if r.state == DEAD then redis.call('ZINCRBY', K.errors, 1, r.fingerprint) end
end

local function remove_from_index(id, r)
  for _, member in ipairs(index_members(id, r)) do take_out(K.index, member) end
  if r.state == DEAD and tonumber(redis.call('ZINCRBY', K.errors, -1, r.fingerprint)) <= 0 then
    redis.call('ZREM', K.errors, r.fingerprint)
  end
end
