-- Documents in intake, oldest first: being validated by somebody, or left by a dead worker.
-- Markers among them have no more use.
-- flags: allow-oom
-- args: skip limit most_bytes longest
-- uses: large
-- Returns up to `limit` documents behind the first `skip`, of `most_bytes` in all or one more; in
-- place of one with more than `longest` bytes {its beginning, its length}.
redis.call('LREM', K.intake, 0, '!')
local found, bytes, most_bytes = {}, 0, tonumber(A.most_bytes)
for i = tonumber(A.skip), tonumber(A.skip) + tonumber(A.limit) - 1 do
  local raw = bytes < most_bytes and redis.call('LINDEX', K.intake, i)
  if not raw then break end
  local size
  found[#found + 1], size = hand_out(raw, tonumber(A.longest))
  bytes = bytes + size
end
return found
