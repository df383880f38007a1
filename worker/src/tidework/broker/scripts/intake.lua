-- Turns validated documents into jobs and refused ones into dead letters. Whoever removes a
-- document's bytes from intake first decides; another caller's copy is left alone.
-- keys: intake
-- args: accepted rejected more ...
--       accepted x (raw, id, body, priority, due ms), then rejected x (raw, id, error)
-- uses: now count record waiting finish
-- Returns up to `more` further documents, moved from the inbox to intake; markers are dropped.
local at = A.rest
for _ = 1, tonumber(A.accepted) do
  if redis.call('LREM', K.intake, 1, ARGV[at]) > 0 then
    local available = ARGV[at + 4] == '' and now or tonumber(ARGV[at + 4])
    insert(ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), available, '', false)
  end
  at = at + 5
end
for _ = 1, tonumber(A.rejected) do
  if redis.call('LREM', K.intake, 1, ARGV[at]) > 0 then
    redis.call('HSET', K.jobs, ARGV[at + 1], ARGV[at])
    count('rejected')
    finish(ARGV[at + 1], fresh(5, now), DEAD, ARGV[at + 2])
  end
  at = at + 3
end
local moved = {}
for _ = 1, tonumber(A.more) do
  local raw = redis.call('LMOVE', K.inbox, K.intake, 'RIGHT', 'RIGHT')
  if not raw then break end
  if raw == '!' then
    redis.call('LREM', K.intake, -1, raw)
  else
    moved[#moved + 1] = raw
  end
end
wake()
write_counts()
return moved
