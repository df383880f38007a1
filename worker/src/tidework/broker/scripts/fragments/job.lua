-- keys: jobs details history progress
-- What is told of one job (get_job.lua has the names), of `whole`: what `jobs` holds of it.
local STATES = {[RUNNING] = 'running', [SUCCEEDED] = 'succeeded', [DEAD] = 'dead',
  [CANCELLED] = 'cancelled'}

local function parts_of_job(id, whole)
  local r = load(id)
  if not r then return false end
  local state = STATES[r.state]
  local available = r.available
  if not state then
    local score = tonumber(redis.call('ZSCORE', K.scheduled, id))
    state = score and 'scheduled' or 'ready'
    if score == HELD then available = -1 end
  end
  return {state, whole, r.priority, r.attempt, r.deliveries, r.losses, r.releases, r.cancel,
    available, r.changed, r.started, r.token, r.cron, stored(K.details, id) or '',
    string.sub(r.unique, 2), stored(K.history, id) or '', stored(K.progress, id) or ''}
end
