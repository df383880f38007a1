-- Cordons the least busy of the candidates, under a term: they claim nothing until the time is over.
-- Their leases are read in the same step, so that a worker told to hold none gets none.
-- Whoever was cordoned before and is not among them now claims again.
-- flags: allow-oom
-- keys: draining holders
-- args: term sequence count ttl_ms ...       candidates: incarnations
-- uses: now reads writes record waiting fence late
-- Returns {'stale', stored term} or {'ok', {incarnation, leases...}}.
local stored = fence(tonumber(A.term))
if stored then return {'stale', stored} end
if is_late('drain', A.term, A.sequence) then return {'ok', {}} end
local found = {}
for i = A.rest, #ARGV do
  local name = ARGV[i]
  local cordoned = (tonumber(redis.call('ZSCORE', K.draining, name)) or 0) > now
  local leases = tonumber(redis.call('HGET', K.holders, name)) or 0
  found[#found + 1] = {name = name, leases = leases, cordoned = cordoned and 0 or 1}
end
table.sort(found, function(a, b)
  if a.leases ~= b.leases then return a.leases < b.leases end
  if a.cordoned ~= b.cordoned then return a.cordoned < b.cordoned end
  return a.name < b.name
end)
redis.call('DEL', K.draining)
local reply = {}
for i = 1, math.min(#found, tonumber(A.count)) do
  redis.call('ZADD', K.draining, now + tonumber(A.ttl_ms), found[i].name)
  reply[#reply + 1] = found[i].name
  reply[#reply + 1] = found[i].leases
end
-- Whoever claims again has to be told that there is work.
wake()
return {'ok', reply}
