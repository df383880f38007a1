-- How an attempt ends otherwise than by success (success.lua); args of a script that has it: poison_cap
-- release_cap.
local CAPPED_RELEASE_DELAY_MS = 5000

local function release(id, r, delay_ms)
  count('released')
  tally(r.task, 'g')
  r.releases = r.releases + 1
  if r.releases > tonumber(A.release_cap) then
    wait_again(id, r, now + math.max(delay_ms, CAPPED_RELEASE_DELAY_MS))
    return
  end
  r.attempt = r.attempt - 1
  wait_again(id, r, delay_ms > 0 and now + delay_ms or math.min(r.available, now))
end

local function unknown_error(cause, grace_ms)
  local message = string.format('%s; no worker knew it for %.0f s', cause, grace_ms / 1000)
  return '{"type":"UnknownTaskError","message":' .. cjson.encode(message) .. ',"cause":"unknown_task"}'
end

-- kind and extra as an exchange has them; 'u' is a release for want of a worker that knows the task,
-- detail the ms for which a job waits for one, from the first such release on: then it is a dead letter.
-- False if the token does not hold (any more).
local function settle(id, token, kind, extra, detail, cause)
  local packed = stored(K.records, id)
  local r = packed and unpack_record(packed)
  if not r or r.state ~= RUNNING or r.token ~= token then
    count('lease_lost')
    return false
  end
  local waits_until = kind == 'u' and (unknown_until(id) or now + tonumber(detail))
  local is_over = waits_until and waits_until <= now
  local gives_back = kind == 'r' or kind == 'l' or kind == 'u' or kind == 'x'
  local cancelled = kind == 'n' or (r.cancel == 1 and gives_back)
  note_end(id, r, cancelled and 'n' or is_over and 'b' or waits_until and 'l' or kind, cause)
  drop_lease(id, r)
  if cancelled then
    finish(id, r, CANCELLED, '')
  elseif kind == 'b' then
    tally(r.task, 'f')
    finish(id, r, DEAD, detail, extra)
  elseif kind == 'r' then
    count('retried')
    tally(r.task, 'f')
    tally(r.task, 'r')
    put(K.details, id, detail)
    wait_again(id, r, now + tonumber(extra))
  elseif is_over then
    finish(id, r, DEAD, unknown_error(cause, tonumber(detail)), 'UnknownTaskError')
  elseif waits_until then
    release(id, r, math.min(tonumber(extra), waits_until - now))
    note_unknown(id, r.available, math.max(r.available, waits_until))
  elseif kind == 'l' then
    release(id, r, tonumber(extra))
  else
    lose(id, r, detail, tonumber(A.poison_cap), extra, 0)
  end
  return true
end
