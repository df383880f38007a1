-- keys: progress
-- What a job says of its progress, and where its checkpoints stand, for as long as it may run again:
-- '<lease token> <sequence> <ms>', then two JSON texts or '', each behind a tab. Few jobs say any.
local any_progress
local function has_progress()
  if any_progress == nil then any_progress = redis.call('EXISTS', K.progress) == 1 end
  return any_progress
end

local function forget_progress(id)
  if has_progress() then drop(K.progress, id) end
end
