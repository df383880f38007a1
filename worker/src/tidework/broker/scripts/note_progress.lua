-- Keeps what running jobs say of their progress and of the positions of their checkpoints.
-- flags: allow-oom
-- args: ...          groups of: id, token, sequence, progress, positions; '' = as before
-- uses: now reads writes record progress
-- Returns the ids whose lease is lost. A copy that comes behind a later one of its lease does nothing.
local refused, ids = {}, {}
for i = A.rest, #ARGV, 5 do ids[#ids + 1] = ARGV[i] end
look_up(K.records, ids)
look_up(K.progress, ids)
for i = A.rest, #ARGV, 5 do
  local id, token, sequence, progress, positions = unpack(ARGV, i, i + 4)
  local packed = stored(K.records, id)
  local r = packed and unpack_record(packed)
  if not r or r.state ~= RUNNING or r.token ~= token then
    refused[#refused + 1] = id
  else
    local before, last, said, stood = '', '0', '', ''
    local told = stored(K.progress, id)
    if told then
      before, last, said, stood = string.match(told, '^(%S+) (%d+) %d+\t([^\t]*)\t([^\t]*)$')
    end
    if before ~= token or tonumber(last) < tonumber(sequence) then
      if progress == '' then progress = said end
      if positions == '' then positions = stood end
      put(K.progress, id, token .. ' ' .. sequence .. ' ' .. text(now) .. '\t' .. progress .. '\t' .. positions)
    end
  end
end
flush()
return refused
