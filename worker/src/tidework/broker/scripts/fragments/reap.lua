-- Jobs whose lease ran out are taken back.
local function reap(limit, poison_cap)
  local first = earliest_expiry()
  if not first or first > now then return 0, 0 end
  note_leases(nil)
  local given_back, buried = 0, 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.leases, '-inf', now, 'LIMIT', 0, limit)) do
    local r = load(id)
    local worker = worker_of(r.token)
    count('reaped')
    S.note_end(id, r, 'e', 'the lease expired')
    S.drop_lease(id, r)
    if r.cancel == 1 then
      S.finish(id, r, CANCELLED, '')
      given_back = given_back + 1
    else
      local message = 'worker ' .. worker .. ' was lost while it held the job'
      local detail = '{"type":"LeaseExpired","message":' .. cjson.encode(message) .. ',"cause":"lost"}'
      -- Since its last renewal a lease has passed.
      if S.lose(id, r, detail, poison_cap, 'LeaseExpired', tonumber(A.lease_ms)) then
        buried = buried + 1
      else
        given_back = given_back + 1
      end
    end
  end
  return given_back, buried
end
