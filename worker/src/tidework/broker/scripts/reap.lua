-- Takes back jobs whose lease ran out: ready again, cancelled, or dead at the poison cap.
-- flags: allow-oom
-- keys: leases
-- args: batch lease_ms poison_cap
-- uses: now reads writes record waiting guard stamp due reap
-- seldom: unique index history progress finish cordon set_back
-- Returns {given back, buried, next due ms}.
local given_back, buried = 0, 0
if stamp(tonumber(A.lease_ms)) then
  given_back, buried = reap(tonumber(A.batch), tonumber(A.poison_cap))
end
wake()
flush()
return {given_back, buried, next_due()}
