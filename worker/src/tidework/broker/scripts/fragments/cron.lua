-- keys: crons runs fires
-- The record of one CronTask: fields <uid>/<name> of one hash.
local FIELDS = {'fingerprint', 'watermark', 'decided', 'verdict', 'fire', 'job', 'run_now', 'held', 'by_hand', 'suspended'}
local VERDICTS = {'enqueued', 'skipped_overlap', 'missed_deadline', 'missed_catch_up'}

local function read_cron(uid)
  local names = {}
  for _, field in ipairs(FIELDS) do names[#names + 1] = uid .. '/' .. field end
  for _, verdict in ipairs(VERDICTS) do names[#names + 1] = uid .. '/' .. verdict end
  local values = redis.call('HMGET', K.crons, unpack(names))
  if not values[1] then return nil end
  local cron = {}
  for i, field in ipairs(FIELDS) do cron[field] = values[i] or '' end
  for i, verdict in ipairs(VERDICTS) do cron[verdict] = tonumber(values[#FIELDS + i]) or 0 end
  return cron
end

local function write_cron(uid, ...)
  local pairs_given = {...}
  for i = 1, #pairs_given, 2 do pairs_given[i] = uid .. '/' .. pairs_given[i] end
  redis.call('HSET', K.crons, unpack(pairs_given))
end

-- The fires up to this second get no verdict (any more).
local function pass_fires(uid, cron, second)
  if second > tonumber(cron.watermark) then write_cron(uid, 'watermark', string.format('%.0f', second)) end
end

-- A run that is held stays known, or nobody would let it go: finish.lua forgets it then.
local function forget_cron(uid)
  local names = {}
  for _, field in ipairs(FIELDS) do
    if field ~= 'held' then names[#names + 1] = uid .. '/' .. field end
  end
  for _, verdict in ipairs(VERDICTS) do names[#names + 1] = uid .. '/' .. verdict end
  names[#names + 1] = uid .. '/backfilled'
  redis.call('HDEL', K.crons, unpack(names))
  redis.call('HDEL', K.fires, uid)
end

local function cron_reply(uid, cron)
  local reply = {}
  for i, field in ipairs(FIELDS) do reply[i] = cron[field] end
  for _, verdict in ipairs(VERDICTS) do reply[#reply + 1] = cron[verdict] end
  local runs = redis.call('ZRANGEBYLEX', K.runs, '[' .. uid .. '|', '(' .. uid .. '}')
  for _, member in ipairs(runs) do reply[#reply + 1] = string.sub(member, #uid + 2) end
  return reply
end
