-- Cordons candidates under a term: they claim nothing until the time is over. First those whom a
-- person cordoned, then the least busy. Their leases are read in the same step, so that a worker
-- told to hold none gets none. Whoever was cordoned before and is not among them now claims again,
-- unless a person cordoned it.
-- flags: allow-oom
-- keys: draining holders
-- args: term sequence count ttl_ms ...       candidates: incarnations
-- uses: now reads writes record waiting fence late cordon
-- Returns {'stale', stored term} or {'ok', {incarnation, leases...}}.
local newer = fence(tonumber(A.term))
if newer then return {'stale', newer} end
if is_late('drain', A.term, A.sequence) then return {'ok', {}} end
local found = {}
for i = A.rest, #ARGV do
  local name = ARGV[i]
  local by_person, until_ms = cordon_of(name)
  local leases = tonumber(redis.call('HGET', K.holders, name)) or 0
  found[#found + 1] = {name = name, leases = leases, person = by_person and 0 or 1,
    cordoned = until_ms > now and 0 or 1}
end
table.sort(found, function(a, b)
  if a.person ~= b.person then return a.person < b.person end
  if a.leases ~= b.leases then return a.leases < b.leases end
  if a.cordoned ~= b.cordoned then return a.cordoned < b.cordoned end
  return a.name < b.name
end)
for _, name in ipairs(redis.call('ZRANGE', K.draining, 0, -1)) do
  cordon(name, cordon_of(name), 0)
end
local reply = {}
for i = 1, math.min(#found, tonumber(A.count)) do
  cordon(found[i].name, found[i].person == 0, now + tonumber(A.ttl_ms))
  reply[#reply + 1] = found[i].name
  reply[#reply + 1] = found[i].leases
end
-- Whoever claims again has to be told that there is work.
wake()
return {'ok', reply}
