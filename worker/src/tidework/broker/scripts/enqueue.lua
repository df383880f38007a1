-- Inserts jobs; an id that is known is left alone. No allow-oom: a full server refuses new work.
-- keys: jobs
-- args: ...          groups of: id, body, priority, due ms ('' = now)
-- uses: now count record waiting
-- Returns 1 or 0 per job: inserted or known.
local inserted = {}
for i = A.rest, #ARGV, 4 do
  local available = ARGV[i + 3] == '' and now or tonumber(ARGV[i + 3])
  inserted[#inserted + 1] = insert(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), available, '', false) and 1 or 0
end
wake()
write_counts()
return inserted
