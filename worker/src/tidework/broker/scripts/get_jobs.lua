-- Read-out: many jobs at once, all of them or those that hold a text.
-- flags: no-writes
-- args: most_bytes text escaped ...      ids
--       most_bytes: of an envelope; of a longer one comes its beginning
--       text, escaped: what the id, the envelope or the error has to hold, as it is and as JSON may
--       write it; '' = any
-- uses: reads record job
-- Returns for each id false if it is not known or does not hold the text, else the parts of get_job.lua
-- and the length of the whole body.
local most_bytes = tonumber(A.most_bytes)
local ids = {}
for i = A.rest, #ARGV do ids[#ids + 1] = ARGV[i] end
for _, key in ipairs({K.records, K.jobs, K.details}) do look_up(key, ids) end

local function holds(where)
  return where and (string.find(where, A.text, 1, true) or string.find(where, A.escaped, 1, true))
end

local found = {}
for i, id in ipairs(ids) do
  local whole = stored(K.jobs, id)
  found[i] = false
  if whole and (A.text == '' or holds(id) or holds(whole) or holds(stored(K.details, id))) then
    local parts = parts_of_job(id, string.sub(whole, 1, most_bytes))
    if parts then parts[#parts + 1] = #whole end
    found[i] = parts
  end
end
return found
