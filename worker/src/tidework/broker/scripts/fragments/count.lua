-- keys: counters
-- Counters are sums of transitions: collected while the script runs, written once per name.
local sums = {}
local function count(name, by)
  sums[name] = (sums[name] or 0) + (by or 1)
end
local function write_counts()
  for name, by in pairs(sums) do
    if by ~= 0 then redis.call('HINCRBY', K.counters, name, by) end
  end
  sums = {}
end
