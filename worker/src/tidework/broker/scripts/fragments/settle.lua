-- How a job ends otherwise than thousands a second do; args of a script that has it: poison_cap
-- release_cap.
local CAPPED_RELEASE_DELAY_MS = 5000

local function release(id, r, delay_ms)
  count('released')
  r.releases = r.releases + 1
  if r.releases > tonumber(A.release_cap) then
    wait_again(id, r, now + math.max(delay_ms, CAPPED_RELEASE_DELAY_MS))
    return
  end
  r.attempt = r.attempt - 1
  wait_again(id, r, delay_ms > 0 and now + delay_ms or math.min(r.available, now))
end

-- kind and extra as an exchange has them; 'u' is a release for want of a worker that knows the task,
-- detail the ms for which it waits for one. False if the token does not hold (any more).
local function settle(id, token, kind, extra, detail, cause)
  local packed = stored(K.records, id)
  local r = packed and unpack_record(packed)
  if not r or r.state ~= RUNNING or r.token ~= token then
    count('lease_lost')
    return false
  end
  local is_release = kind == 'l' or kind == 'u'
  local gives_back = kind == 'r' or is_release or kind == 'x'
  local cancelled = kind == 'n' or (r.cancel == 1 and gives_back)
  if kind ~= 'c' then
    note_end(id, r, cancelled and 'n' or is_release and 'l' or kind, cause)
  end
  drop_lease(id, r)
  if cancelled then
    finish(id, r, CANCELLED, '')
  elseif kind == 'c' then
    r.token = token -- tells whose success it was
    finish(id, r, SUCCEEDED, detail)
  elseif kind == 'b' then
    finish(id, r, DEAD, detail, extra)
  elseif kind == 'r' then
    count('retried')
    put(K.details, id, detail)
    wait_again(id, r, now + tonumber(extra))
  elseif is_release then
    release(id, r, tonumber(extra))
    if kind == 'u' then
      note_unknown(id, r.available, math.max(r.available, now + tonumber(detail)))
    end
  else
    lose(id, r, detail, tonumber(A.poison_cap), extra, 0)
  end
  return true
end
