-- Settles outcomes and claims jobs in one step. A resend of the last sequence gets the same reply.
-- flags: allow-oom
-- keys: replies seen services jobs draining
-- args: incarnation sequence want woken lease_ms poison_cap release_cap keep_succeeded_ms keep_dead_ms keep_count batch settled served ...
--       settled x (id, token, kind, delay ms or, of a dead job, its error's fingerprint, detail),
--       then served x (task, count, ms)
-- uses: now count record waiting documents unique index finish guard due prune oldest
-- Returns {'ok', next due ms, ready jobs left, documents, refused ids, claimed x (id, attempt,
-- deliveries, losses, releases, task + zero byte + body), 1 if cordoned, 1 if paused} or
-- {'stale', last sequence}.
local CAPPED_RELEASE_DELAY_MS = 5000
local SERVICE_WEIGHT = 0.05
local ANTI_STARVATION = 10
local sequence = tonumber(A.sequence)
local lease_ms = tonumber(A.lease_ms)

local draining = (tonumber(redis.call('ZSCORE', K.draining, A.incarnation)) or 0) > now
local paused = is_paused()
local token_of_claim = A.incarnation .. ':' .. A.sequence
local bodies = {}

-- A resend may come so late that a claimed job is somebody else's by now: left out.
local function reply_of(ids, refused)
  local claimed = {}
  for _, id in ipairs(ids) do
    local r = load(id)
    if r and r.state == RUNNING and r.token == token_of_claim then
      claimed[#claimed + 1] = {id, r.attempt, r.deliveries, r.losses, r.releases,
        bodies[id] or redis.call('HGET', K.jobs, id)}
    end
  end
  return {'ok', next_due(), redis.call('ZCARD', K.ready), documents(), refused, claimed,
    draining and 1 or 0, paused and 1 or 0}
end

local known = redis.call('HGET', K.replies, A.incarnation)
if known then
  local last = cmsgpack.unpack(known)
  if sequence == last[1] then
    local reply = reply_of(last[2], last[3])
    count('repeated')
    write_counts()
    -- Whole leases, as of a claim: the lost reply may have taken most of the former ones.
    for _, found in ipairs(reply[6]) do redis.call('ZADD', K.leases, now + lease_ms, found[1]) end
    reply[2] = next_due()
    return reply
  end
  if sequence < last[1] then
    count('stale_requests')
    write_counts()
    return {'stale', last[1]}
  end
end

local function release(id, r, delay_ms)
  count('released')
  r.releases = r.releases + 1
  if r.releases > tonumber(A.release_cap) then
    wait_again(id, r, now + math.max(delay_ms, CAPPED_RELEASE_DELAY_MS))
    return
  end
  r.attempt = r.attempt - 1
  wait_again(id, r, delay_ms > 0 and now + delay_ms or r.available)
end

local function settle(id, token, kind, extra, detail)
  local packed = redis.call('HGET', K.records, id)
  local r = packed and unpack_record(packed)
  if not r or r.state ~= RUNNING or r.token ~= token then
    count('lease_lost')
    return false
  end
  drop_lease(id, r)
  local gives_back = kind == 'r' or kind == 'l' or kind == 'x'
  if kind == 'n' or (r.cancel == 1 and gives_back) then
    finish(id, r, CANCELLED, '')
  elseif kind == 'c' then
    finish(id, r, SUCCEEDED, detail)
  elseif kind == 'b' then
    finish(id, r, DEAD, detail, extra)
  elseif kind == 'r' then
    count('retried')
    redis.call('HSET', K.details, id, detail)
    wait_again(id, r, now + tonumber(extra))
  elseif kind == 'l' then
    release(id, r, tonumber(extra))
  else
    lose(id, r, detail, tonumber(A.poison_cap), extra)
  end
  return true
end

local function claim(id, score, token)
  local packed = redis.call('HGET', K.records, id)
  local r = packed and unpack_record(packed)
    or fresh(math.floor(score / BY_PRIORITY), score % BY_PRIORITY)
  bodies[id] = redis.call('HGET', K.jobs, id)
  if r.task == '' then r.task = split_body(bodies[id]) end
  if string.sub(r.unique, 1, 1) == 's' then free_key(id, r.unique) end
  r.state = RUNNING
  r.attempt = r.attempt + 1
  r.deliveries = math.min(r.deliveries + 1, 65535)
  r.token = token
  r.started = now
  r.changed = now
  save(id, r)
  redis.call('ZADD', K.leases, now + lease_ms, id)
end

-- Most urgent first; every tenth claim of the queue takes the oldest instead.
local function claim_up_to(want, token)
  local ids = {}
  local done = tonumber(redis.call('HGET', K.counters, 'claimed')) or 0
  while #ids < want do
    local plain = math.min(want - #ids, ANTI_STARVATION - 1 - (done + #ids) % ANTI_STARVATION)
    local popped = plain > 0 and redis.call('ZPOPMIN', K.ready, plain) or {}
    for i = 1, #popped, 2 do
      claim(popped[i], tonumber(popped[i + 1]), token)
      ids[#ids + 1] = popped[i]
    end
    if #popped < 2 * plain then break end
    if #ids < want then
      local id, at, priority = oldest_ready()
      if not id then break end
      redis.call('ZREM', K.ready, id)
      claim(id, priority * BY_PRIORITY + at, token)
      ids[#ids + 1] = id
    end
  end
  if #ids > 0 then
    count('claimed', #ids)
    redis.call('HINCRBY', K.holders, A.incarnation, #ids)
  end
  return ids
end

local function note_served(task, served, served_ms)
  local mean = served_ms / served
  local average = tonumber(redis.call('HGET', K.services, task)) or mean
  local weight = 1 - (1 - SERVICE_WEIGHT) ^ served
  redis.call('HSET', K.services, task, average + weight * (mean - average))
end

if A.woken == '1' then redis.call('LREM', K.intake, 1, '!') end
local may_reap = stamp(lease_ms)
local refused = {}
local at = A.rest
for _ = 1, tonumber(A.settled) do
  if not settle(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]) then
    refused[#refused + 1] = ARGV[at]
  end
  at = at + 5
end
for _ = 1, tonumber(A.served) do
  note_served(ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
  at = at + 3
end
local batch = tonumber(A.batch)
promote(batch)
if may_reap then reap(batch, tonumber(A.poison_cap)) end
local ids = claim_up_to((draining or paused) and 0 or tonumber(A.want), token_of_claim)
prune(batch, tonumber(A.keep_succeeded_ms), tonumber(A.keep_dead_ms), tonumber(A.keep_count))
wake()
write_counts()
redis.call('HSET', K.replies, A.incarnation, cmsgpack.pack({sequence, ids, refused}))
-- The reply is forgotten with the worker (absent.lua), also if it never beat.
redis.call('ZADD', K.seen, now, A.incarnation)
return reply_of(ids, refused)
