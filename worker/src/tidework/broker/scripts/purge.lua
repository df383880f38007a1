-- Deletes ended jobs at once. Their ids stay known for ten minutes after their end, as ever.
-- flags: allow-oom
-- keys: jobs
-- args: ...          ids
-- uses: now reads writes record progress prune
-- seldom: index
-- Returns one of 'purged', 'unknown', 'unfinished' per id.
local ended = {[SUCCEEDED] = K.succeeded, [DEAD] = K.dead, [CANCELLED] = K.cancelled}
local answers = {}
for i = A.rest, #ARGV do
  local r = load(ARGV[i])
  if not r then
    answers[#answers + 1] = 'unknown'
  elseif not ended[r.state] then
    answers[#answers + 1] = 'unfinished'
  else
    forget(ended[r.state], ARGV[i], r.changed)
    count('purged')
    answers[#answers + 1] = 'purged'
  end
end
count('purge_requests')
flush()
return answers
