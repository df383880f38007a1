-- Makes due jobs ready.
-- flags: allow-oom
-- keys: scheduled
-- args: batch
-- uses: now reads writes record waiting guard due
-- Returns their number.
local promoted = promote(tonumber(A.batch))
wake()
return promoted
