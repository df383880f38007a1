-- Takes back jobs whose lease ran out: ready again, cancelled, or dead at the poison cap.
-- flags: allow-oom
-- keys: leases
-- args: batch lease_ms poison_cap
-- reply: given_back buried next_due
-- uses: now reads writes record waiting tallies guard stamp due reap
-- seldom: unique index history progress finish cordon set_back fires points
-- given_back, buried: numbers of jobs; next_due: ms, -1 = nothing.
local given_back, buried = 0, 0
if stamp(tonumber(A.lease_ms)) then
  given_back, buried = reap(tonumber(A.batch), tonumber(A.poison_cap))
end
write_tallies()
wake()
flush()
return {given_back, buried, next_due()}
