-- Settles outcomes and claims jobs in one step. A resend of the last sequence gets the same reply.
-- One that was sent ahead, behind a wait for work, names `most_held` (else ''): it claims only as
-- far as the worker holds no more leases than that, and its sequences are remembered apart.
-- flags: allow-oom
-- keys: replies seen services jobs draining
-- args: incarnation sequence want woken lease_ms poison_cap release_cap keep_succeeded_ms keep_dead_ms keep_count batch most_held succeeded settled served ...
--       succeeded x (token, number, ids), without results; then settled x (id, token, kind, delay ms
--       or, of a dead job, its error's fingerprint, detail, cause in words); then served x (task, count, ms, buckets,
--       then buckets x (bucket, count)), see tallies.lua
-- reply: status next_due ready documents refused claimed cordoned paused stacks_asked
-- uses: now reads writes record waiting documents progress tallies success guard stamp due reap prune asked
-- seldom: unique index history finish settle oldest cordon set_back fires points
-- status: 'ok', or it returns {'stale', last sequence}; next_due: ms, -1 = nothing; ready: jobs left;
-- refused: ids; claimed: x (id, task + zero byte + body, then unless this is its first delivery:
-- attempt, deliveries, losses, releases); cordoned, paused: 1 if so; stacks_asked: 1 if nothing was
-- claimed and somebody asked for the worker's stacks.
local SERVICE_WEIGHT = 0.05
local ANTI_STARVATION = 10
local SEEN_EVERY = 16
local LAST_BUCKET = 55
local sequence = tonumber(A.sequence)
local lease_ms = tonumber(A.lease_ms)

local draining = (score_of(K.draining, A.incarnation) or 0) > now
local token_of_claim = A.incarnation .. ':' .. A.sequence
local claimed, claimed_ids, refused = {}, {}, {}

-- A worker with jobs hears it with their renewal.
local function is_asked()
  return #claimed == 0 and A.want ~= '0' and are_stacks_asked(A.incarnation)
end

local function reply()
  return {'ok', next_due(), count_ready(), documents(), refused, claimed,
    draining and 1 or 0, is_paused() and 1 or 0, is_asked() and 1 or 0}
end

-- A resend may come so late that a claimed job is somebody else's by now: left out. The leases are
-- whole ones again, as of a claim: the lost reply may have taken most of the former ones.
local function reply_again(ids)
  look_up(K.jobs, ids)
  for _, id in ipairs(ids) do
    local r = load(id)
    if r and r.state == RUNNING and r.token == token_of_claim then
      claimed[#claimed + 1] = {id, stored(K.jobs, id), r.attempt, r.deliveries, r.losses, r.releases}
      place(K.leases, now + lease_ms, id)
    end
  end
  count('repeated')
  flush()
  return reply()
end

-- Of both kinds the last sequence and the ids it claimed, then the ids the first kind was refused.
local AT = A.most_held == '' and 1 or 4
local last_reply = redis.call('HGET', K.replies, A.incarnation)
local replied = last_reply and cmsgpack.unpack(last_reply) or {0, {}, {}, 0, {}}
local last = replied[AT] or 0
if sequence == last then
  if AT == 1 then refused = replied[3] end
  return reply_again(replied[AT + 1])
end
if sequence < last then
  count('stale_requests')
  flush()
  return {'stale', last}
end

local function wanted()
  local want = tonumber(A.want)
  if A.most_held == '' then return want end
  flush()
  local holds = tonumber(redis.call('HGET', K.holders, A.incarnation)) or 0
  return math.min(want, tonumber(A.most_held) - holds)
end

-- Of one priority the most urgent is the oldest.
local function is_of_one_priority()
  local first = redis.call('ZRANGE', K.ready, 0, 0, 'WITHSCORES')
  local last = redis.call('ZRANGE', K.ready, -1, -1, 'WITHSCORES')
  return first[2] and math.floor(first[2] / BY_PRIORITY) == math.floor(last[2] / BY_PRIORITY)
end

-- Pops up to so many: the most urgent, but every tenth claim of the queue takes the oldest.
local function pick(want)
  local ids, scores = {}, {}
  local function add(popped)
    for i = 1, #popped, 2 do ids[#ids + 1], scores[#scores + 1] = popped[i], popped[i + 1] end
    return #popped / 2
  end
  local done = tonumber(redis.call('HGET', K.counters, 'claimed')) or 0
  while #ids < want do
    local plain = math.min(want - #ids, ANTI_STARVATION - 1 - (done + #ids) % ANTI_STARVATION)
    if plain > 0 and add(redis.call('ZPOPMIN', K.ready, plain)) < plain then break end
    if #ids < want then
      local id, _, score = S.oldest_ready()
      if not id then break end
      redis.call('ZREM', K.ready, id)
      add({id, score})
    end
  end
  return ids, scores
end

local function take_ready(want)
  flush()
  if count_ready() > 1 and not is_of_one_priority() then return pick(want) end
  local ids, scores = {}, {}
  local popped = redis.call('ZPOPMIN', K.ready, want)
  for i = 1, #popped, 2 do ids[#ids + 1], scores[#scores + 1] = popped[i], popped[i + 1] end
  return ids, scores
end

-- 0: below 1 ms; each further one ends at 1.4 times (the root of 2) where the one before it does.
local function bucket_of(ms)
  if ms < 1 then return 0 end
  local fraction, exponent = math.frexp(ms)
  return math.min(2 * exponent - (fraction < 0.5 ^ 0.5 and 1 or 0), LAST_BUCKET)
end

-- So many claims of jobs that were due since then.
local function tally_claims(task, due, number)
  local wait_ms = math.max(0, now - due)
  tally(task, 'w' .. bucket_of(wait_ms), number)
  tally(task, 'W', wait_ms * number)
end

local function claim(ids, scores)
  -- Jobs that were never claimed, of one score and task, have the same record: made and counted once.
  local first_claims = {}

  local function claimed_now(r, body)
    if r.task == '' then r.task = task_of(body) end
    r.state, r.token, r.started, r.changed = RUNNING, token_of_claim, now, now
    r.attempt = r.attempt + 1
    r.deliveries = math.min(r.deliveries + 1, 65535)
    return pack_record(r)
  end

  local function first_claim(score, body)
    local of_score, task = entries(first_claims, score), task_of(body)
    local found = of_score[task]
    if not found then
      local number = tonumber(score)
      local due = number % BY_PRIORITY
      found = {packed = claimed_now(fresh(math.floor(number / BY_PRIORITY), due), body), due = due, number = 0}
      of_score[task] = found
    end
    found.number = found.number + 1
    return found.packed
  end

  local read, bodies = look_up(K.records, ids), look_up(K.jobs, ids)
  local expiry = text(now + lease_ms)
  local records, leases, n = {}, {}, 0
  for i = 1, #ids do
    local id = ids[i]
    local packed, body = read[id], bodies[id]
    if not body then
      drop(K.records, id) -- somebody else deleted the job
    else
      n = n + 1
      records[2 * n - 1], leases[2 * n - 1], leases[2 * n] = id, expiry, id
      if packed then
        local r = unpack_record(packed)
        if string.sub(r.unique, 1, 1) == 's' then S.free_key(id, r.unique) end
        if r.releases > 0 then S.note_unknown_claimed(id) end
        records[2 * n] = claimed_now(r, body)
        tally_claims(r.task, r.available, 1)
        claimed[n] = {id, body, r.attempt, r.deliveries, r.losses, r.releases}
      else
        records[2 * n] = first_claim(scores[i], body)
        claimed[n] = {id, body}
      end
    end
  end
  for _, of_score in pairs(first_claims) do
    for task, found in pairs(of_score) do tally_claims(task, found.due, found.number) end
  end
  send('HSET', K.records, records)
  send('ZADD', K.leases, leases)
  if n > 0 then note_leases(now + lease_ms) end
  count('claimed', n)
  count_leases(A.incarnation, n)
end

local function claim_up_to(want)
  local scores
  claimed_ids, scores = take_ready(want)
  note_ready(-#claimed_ids)
  claim(claimed_ids, scores)
end

local function settle_one(id, token, kind, extra, detail, cause)
  local holds
  if kind == 'c' then
    holds = succeed(id, token, detail)
  else
    holds = S.settle(id, token, kind, extra, detail, cause)
  end
  if not holds then refused[#refused + 1] = id end
end

-- Returns where the next one is.
local function note_served(at)
  local task, served, served_ms, buckets = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local mean = served_ms / served
  local average = tonumber(redis.call('HGET', K.services, task)) or mean
  local weight = 1 - (1 - SERVICE_WEIGHT) ^ served
  redis.call('HSET', K.services, task, average + weight * (mean - average))
  tally(task, 'X', math.floor(served_ms * 1000 + 0.5))
  at = at + 4
  for i = at, at + 2 * buckets - 1, 2 do tally(task, 'x' .. ARGV[i], ARGV[i + 1]) end
  return at + 2 * buckets
end

local function settle_all()
  local at, ids = A.rest, {}
  for _ = 1, tonumber(A.succeeded) do
    local first = at + 2
    at = first + tonumber(ARGV[at + 1])
    for i = first, at - 1 do ids[#ids + 1] = ARGV[i] end
  end
  for i = at, at + 6 * tonumber(A.settled) - 1, 6 do ids[#ids + 1] = ARGV[i] end
  look_up(K.records, ids)
  at = A.rest
  for _ = 1, tonumber(A.succeeded) do
    local token, first = ARGV[at], at + 2
    at = first + tonumber(ARGV[at + 1])
    for i = first, at - 1 do settle_one(ARGV[i], token, 'c', '', '', '') end
  end
  for _ = 1, tonumber(A.settled) do
    settle_one(unpack(ARGV, at, at + 5))
    at = at + 6
  end
  for _ = 1, tonumber(A.served) do
    at = note_served(at)
  end
end

if A.woken == '1' then redis.call('LREM', K.intake, 1, '!') end
local may_reap = stamp(lease_ms)
local settles = A.succeeded ~= '0' or A.settled ~= '0'
if settles or A.served ~= '0' then settle_all() end
local batch = tonumber(A.batch)
promote(batch)
if may_reap then reap(batch, tonumber(A.poison_cap)) end
local want = (draining or is_paused()) and 0 or wanted()
if want > 0 and count_ready() > 0 then claim_up_to(want) end
if settles then
  prune(batch, tonumber(A.keep_succeeded_ms), tonumber(A.keep_dead_ms), tonumber(A.keep_count))
end
write_tallies()
wake()
replied[AT], replied[AT + 1] = sequence, claimed_ids
if AT == 1 then replied[3] = refused end
redis.call('HSET', K.replies, A.incarnation, cmsgpack.pack(replied))
-- The reply is forgotten with the worker (absent.lua), also if it never beat. There is an exchange
-- every few seconds, and nobody is forgotten within minutes.
if not last_reply or sequence % SEEN_EVERY == 0 then
  redis.call('ZADD', K.seen, text(now), A.incarnation)
end
return reply()
