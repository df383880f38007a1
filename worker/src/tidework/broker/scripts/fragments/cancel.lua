-- Cancelling: at once where the job waits, by request where it runs.
local function cancel(id)
  local r = load(id)
  if not r then
    if stored(K.jobs, id) then return 'finished' end
    return 'unknown'
  end
  if r.state == RUNNING then
    r.cancel = 1
    save(id, r)
    return 'requested'
  end
  if r.state ~= WAITING then return 'finished' end
  stop_waiting(id)
  finish(id, r, CANCELLED, '')
  return 'cancelled'
end
