-- keys: counters holders
-- Writes are gathered while a script runs; flush() sends one command for all of a key. Of two
-- writes of one entry the last one counts. Loops over very many jobs build their commands themselves
-- (send), from a state that was flushed.
local gathered = false

local function put(key, field, value)
  gathered = true
  entries(changed, key)[field] = value
end

local function drop(key, field)
  put(key, field, false)
end

local function place(key, score, member)
  gathered = true
  entries(placed, key)[member] = text(score)
end

local function take_out(key, member)
  gathered = true
  entries(placed, key)[member] = false
end

-- Counters are sums of transitions; holders of the leases that a worker got and lost.
local sums, held = {}, {}
local function count(name, by)
  gathered = true
  sums[name] = (sums[name] or 0) + (by or 1)
end
local function count_leases(worker, by)
  gathered = true
  held[worker] = (held[worker] or 0) + by
end

local function send(command, key, values)
  for first = 1, #values, MOST_VALUES do
    redis.call(command, key, unpack(values, first, math.min(first + MOST_VALUES - 1, #values)))
  end
end

local function flush_hash(key, fields)
  local put_in, out, p, o = {}, {}, 0, 0
  local read = entries(known, key)
  for field, value in pairs(fields) do
    read[field] = value
    if value then
      put_in[p + 1], put_in[p + 2] = field, value
      p = p + 2
    else
      o = o + 1
      out[o] = field
    end
  end
  send('HSET', key, put_in)
  send('HDEL', key, out)
end

local function flush_zset(key, members)
  local put_in, out, p, o = {}, {}, 0, 0
  for member, score in pairs(members) do
    if score then
      put_in[p + 1], put_in[p + 2] = score, member
      p = p + 2
    else
      o = o + 1
      out[o] = member
    end
  end
  send('ZADD', key, put_in)
  send('ZREM', key, out)
end

flush = function()
  if not gathered then return end
  for key, fields in pairs(changed) do
    flush_hash(key, fields)
    changed[key] = nil
  end
  for key, members in pairs(placed) do
    flush_zset(key, members)
    placed[key] = nil
  end
  for name, by in pairs(sums) do
    if by ~= 0 then redis.call('HINCRBY', K.counters, name, by) end
  end
  for worker, by in pairs(held) do
    if by ~= 0 and redis.call('HINCRBY', K.holders, worker, by) <= 0 then
      redis.call('HDEL', K.holders, worker)
    end
  end
  sums, held, gathered = {}, {}, false
end
