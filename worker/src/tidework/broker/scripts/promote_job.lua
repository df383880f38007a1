-- Makes a scheduled job ready at once: somebody does not want to wait until it is due.
-- flags: allow-oom
-- keys: unknown
-- args: id
-- uses: now reads writes record waiting
-- Returns 'promoted', or why not: 'unknown', 'held' (until the job that it replaces has ended), 'ready',
-- 'running', 'ended'.
local NOT = {[RUNNING] = 'running', [SUCCEEDED] = 'ended', [DEAD] = 'ended', [CANCELLED] = 'ended'}
local r = load(A.id)
if not r then return 'unknown' end
if NOT[r.state] then return NOT[r.state] end
local score = score_of(K.scheduled, A.id)
if not score then return 'ready' end
if score == HELD then return 'held' end
stop_waiting(A.id)
if stored(K.records, A.id) then
  r.available = now
  save(A.id, r)
  if score_of(K.unknown, A.id) then place(K.unknown, now, A.id) end
end
make_ready(A.id, r.priority, now)
count('promoted_by_hand')
wake()
return 'promoted'
