-- The block of a key was done, or, without ttl_ms, was not.
-- flags: allow-oom
-- args: key id token ttl_ms
-- uses: now reads writes record once
-- Returns 1, or 0 if the mark of this lease is not there: another job took over.
local mark = stored(K.onces, A.key)
if mark ~= A.id .. ' ' .. A.token then
  return mark == ONCE_DONE and A.ttl_ms ~= '' and 1 or 0
end
if A.ttl_ms == '' then
  forget_once(A.key)
else
  mark_once(A.key, ONCE_DONE, tonumber(A.ttl_ms))
end
flush()
return 1
