-- A person keeps a worker from claiming, until it is undone: what it holds it finishes.
-- flags: allow-oom
-- keys: presence holders
-- args: incarnation
-- uses: now cordon
-- Returns false if the worker is not known (any more), or {1, or 0 if a person did so before; leases
-- that it holds}.
local document = redis.call('HGET', K.presence, A.incarnation)
if not document or document == '' then return false end
local by_person, until_ms = cordon_of(A.incarnation)
cordon(A.incarnation, true, until_ms)
return {by_person and 0 or 1, tonumber(redis.call('HGET', K.holders, A.incarnation)) or 0}
