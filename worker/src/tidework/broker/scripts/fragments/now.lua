-- The server's clock in ms since the Unix epoch: the only clock that scripts know.
local function read_now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local now = read_now()
