-- Turns validated documents into jobs and refused ones into dead letters. Whoever removes a
-- document's bytes from intake first decides; another caller's copy is left alone.
-- A job whose unique key is held is dropped and counted, or a dead letter where it asks for an error.
-- No allow-oom: jobs need more room than documents. intake_full.lua is for a full server.
-- args: accepted rejected more most_bytes longest ...
--       accepted x (raw, id, 1 if the document names it, body, priority, due ms, unique), then
--       rejected x (raw, '' or the length of the document of which that is the beginning, id that the
--       document names or '', id that was made up for it, error, fingerprint)
-- uses: now reads writes record waiting tallies unique index progress finish cancel known insert large intake
-- seldom: fires points
-- Returns up to `more` further documents, moved from the inbox to intake; see `move`. In place of one
-- with more than `longest` bytes {its beginning, its length}.
take_in(A.rest, tonumber(A.accepted), tonumber(A.rejected))
local moved = move(tonumber(A.more), tonumber(A.most_bytes), tonumber(A.longest))
write_tallies()
wake()
flush()
return moved
