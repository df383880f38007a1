-- keys: intake
-- Documents that are too large to be read: no more of them leaves the server than their beginning.
local BEGINNING = 4096

-- A document as it is handed out: whole, or {its beginning, its length} where it is longer than
-- `longest` bytes. And how many bytes that are.
local function hand_out(raw, longest)
  if #raw <= longest then return raw, #raw end
  return {string.sub(raw, 1, BEGINNING), #raw}, BEGINNING
end

-- Removes a document from intake. False if somebody else did. length: '', or of the whole document
-- where `raw` is its beginning only.
local function remove_document(raw, length)
  if length == '' then return redis.call('LREM', K.intake, 1, raw) > 0 end
  length = tonumber(length)
  for i = 0, redis.call('LLEN', K.intake) - 1 do
    local whole = redis.call('LINDEX', K.intake, i)
    if #whole == length and string.sub(whole, 1, #raw) == raw then
      return redis.call('LREM', K.intake, 1, whole) > 0
    end
  end
  return false
end
