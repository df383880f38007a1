-- Extends leases to one full lease from now, where the token still holds.
-- flags: allow-oom
-- keys: leases draining
-- args: incarnation lease_ms ...      groups of: id, token
-- reply: next_due documents lost cancelling cordoned paused stacks_asked
-- uses: now reads writes record waiting documents guard stamp due asked
-- seldom: index cordon set_back
-- next_due: ms, -1 = nothing; lost: ids; cancelling: ids whose cancellation is requested; cordoned (the
-- worker), paused (the queue), stacks_asked (of the worker): 1 if so.
local lease_ms = tonumber(A.lease_ms)
stamp(lease_ms)
local lost, cancelling, ids = {}, {}, {}
for i = A.rest, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
look_up(K.records, ids)
for i = A.rest, #ARGV, 2 do
  local id = ARGV[i]
  local packed = stored(K.records, id)
  local r = packed and unpack_record(packed)
  if not r or r.state ~= RUNNING or r.token ~= ARGV[i + 1] then
    lost[#lost + 1] = id
  else
    place(K.leases, now + lease_ms, id)
    if r.cancel == 1 then cancelling[#cancelling + 1] = id end
  end
end
flush()
local draining = (score_of(K.draining, A.incarnation) or 0) > now
return {next_due(), documents(), lost, cancelling, draining and 1 or 0, is_paused() and 1 or 0,
  are_stacks_asked(A.incarnation) and 1 or 0}
