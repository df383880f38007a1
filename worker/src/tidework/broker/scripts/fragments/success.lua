-- keys: leases details succeeded
-- Jobs succeed by thousands a second, so what success makes of a record is worked out once for all jobs
-- that have the same one: those that were claimed together. Needs settle and finish as seldom ones.
local successes = {}

-- plain: nothing follows from the end of such a job but that it has ended.
local function success_of(packed)
  local found = successes[packed]
  if not found then
    local r = unpack_record(packed)
    found = {token = r.state == RUNNING and r.token, worker = worker_of(r.token), repeated = r.deliveries > 1,
      plain = r.cron == '' and r.unique == '' and r.releases == 0,
      task = r.task}
    r.state, r.changed = SUCCEEDED, now
    found.packed = pack_record(r)
    successes[packed] = found
  end
  return found
end

-- detail: its result, or ''. False if the token does not hold (any more).
local function succeed(id, token, detail)
  local packed = stored(K.records, id)
  local success = packed and success_of(packed)
  if not success or success.token ~= token then
    count('lease_lost')
    return false
  end
  if not success.plain then
    local r = unpack_record(packed)
    S.drop_lease(id, r)
    r.token = token -- tells whose success it was
    S.finish(id, r, SUCCEEDED, detail)
    return true
  end
  take_out(K.leases, id)
  put(K.records, id, success.packed)
  place(K.succeeded, now, id)
  if detail ~= '' then
    put(K.details, id, detail)
  elseif success.repeated then
    drop(K.details, id) -- an error of earlier attempts
  end
  forget_progress(id)
  count('succeeded')
  tally(success.task, 's')
  count_leases(success.worker, -1)
  return true
end
