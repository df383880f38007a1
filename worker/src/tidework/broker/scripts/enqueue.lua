-- Inserts jobs, all in one step. An id that is known is left alone, and so is a job whose unique key
-- another one holds; if one of those asks for an error, nothing is inserted.
-- No allow-oom: a full server refuses new work.
-- keys: jobs
-- args: ...          groups of: id, body, priority, due ms ('' = now), unique ('' = none)
-- uses: now reads writes record waiting unique index finish cancel insert
-- Returns {'ok', {1 inserted | 0 known | id of the key's holder...}} or {'conflict', key, holder}.
local GROUP = 5

local function find_conflict()
  local taken = {}
  for i = A.rest, #ARGV, GROUP do
    if ARGV[i + 4] ~= '' and not is_known(ARGV[i]) then
      local _, on_conflict, _, key = read_unique(ARGV[i + 4])
      local holder = taken[key] or holder_of(key)
      if holder and on_conflict == 'e' then return {'conflict', key, holder} end
      if not holder or on_conflict == 'r' then taken[key] = ARGV[i] end
    end
  end
end

local ids = {}
for i = A.rest, #ARGV, GROUP do ids[#ids + 1] = ARGV[i] end
expect(ids)
local conflict = find_conflict()
if conflict then
  count('conflicts')
  flush()
  return conflict
end
local answers = {}
for i = A.rest, #ARGV, GROUP do
  local available = ARGV[i + 3] == '' and now or tonumber(ARGV[i + 3])
  local found = insert(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), available, '', false, ARGV[i + 4])
  answers[#answers + 1] = found == true and 1 or found or 0
end
wake()
flush()
return {'ok', answers}
