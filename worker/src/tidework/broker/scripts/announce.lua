-- A worker says which tasks its application has: kept for those who enqueue by name, and jobs that
-- wait for a worker that knows their task are ready again if it does.
-- flags: allow-oom
-- keys: tasks unknown unknown_until meta
-- args: version from batch keep_ms ...
--       tasks
-- uses: now reads writes record waiting
-- Returns {jobs that were looked at, those of them that wait no more}: with as many as `batch`, call
-- again with what is left out in between as `from`.
local from = tonumber(A.from)
local announced = {}
for i = A.rest, #ARGV do
  announced[ARGV[i]] = true
  if from == 0 then place(K.tasks, now, ARGV[i]) end
end

local found = redis.call('ZRANGE', K.unknown, from, from + tonumber(A.batch) - 1)
look_up(K.records, found)
local taken = 0
for _, id in ipairs(found) do
  local r = load(id)
  if not r or r.state ~= WAITING or announced[r.task] then
    take_out(K.unknown, id)
    take_out(K.unknown_until, id)
    taken = taken + 1
    if r and r.state == WAITING and score_of(K.scheduled, id) then
      stop_waiting(id)
      r.available = now
      save(id, r)
      make_ready(id, r.priority, now)
    end
  end
end

if from == 0 then
  local forgotten = redis.call('ZRANGEBYSCORE', K.tasks, '-inf', now - tonumber(A.keep_ms), 'LIMIT', 0, 1000)
  for _, task in ipairs(forgotten) do
    if not announced[task] then take_out(K.tasks, task) end
  end
end
wake()
-- Not before all were looked at.
if #found < tonumber(A.batch) then redis.call('HSET', K.meta, 'announced', A.version) end
return {#found, taken}
