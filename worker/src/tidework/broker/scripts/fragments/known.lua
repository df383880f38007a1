-- keys: jobs tombstones
-- An id is known from its enqueue until ten minutes after its end at least.
local tombstones = {}

-- Reads what is_known() will be asked for, in one go.
local function expect(ids)
  look_up(K.jobs, ids)
  for first = 1, #ids, MOST_VALUES do
    local last = math.min(first + MOST_VALUES - 1, #ids)
    local scores = redis.call('ZMSCORE', K.tombstones, unpack(ids, first, last))
    for i = first, last do tombstones[ids[i]] = scores[i - first + 1] end
  end
end

local function is_known(id)
  if stored(K.jobs, id) then return true end
  local score = tombstones[id]
  if score == nil then score = redis.call('ZSCORE', K.tombstones, id) end
  return (tonumber(score) or 0) > now
end
