-- What a script has read, and what writes.lua gathers. stored() and score_of() know of both;
-- whoever looks at a range or the size of a key flushes first.
local MOST_VALUES = 4000 -- in one command; the stack of Lua has room for 8000

local flush = function() end -- nothing is gathered: writes.lua

local texts = {}
local function text(number)
  local found = texts[number]
  if not found then
    found = string.format('%.0f', number)
    texts[number] = found
  end
  return found
end

-- Hashes: key -> field -> value, false where there is none: as read, and as it will be.
local known, changed = {}, {}

local function entries(of, key)
  local found = of[key]
  if not found then
    found = {}
    of[key] = found
  end
  return found
end

-- Reads what stored() will be asked for, in one go. Returns what is known of the key.
local function look_up(key, fields)
  local found = entries(known, key)
  for first = 1, #fields, MOST_VALUES do
    local last = math.min(first + MOST_VALUES - 1, #fields)
    local values = redis.call('HMGET', key, unpack(fields, first, last))
    for i = first, last do
      local field = fields[i]
      if found[field] == nil then found[field] = values[i - first + 1] end
    end
  end
  return found
end

local function stored(key, field)
  local value = changed[key] and changed[key][field]
  if value ~= nil then return value end
  local found = entries(known, key)
  value = found[field]
  if value == nil then
    value = redis.call('HGET', key, field)
    found[field] = value
  end
  return value
end

-- Sorted sets: key -> member -> score, false where it is to go.
local placed = {}

local function score_of(key, member)
  local score = placed[key] and placed[key][member]
  if score == nil then score = redis.call('ZSCORE', key, member) end
  return tonumber(score)
end
