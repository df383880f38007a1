-- Documents in intake, oldest first: being validated by somebody, or left by a dead worker.
-- Markers among them have no more use.
-- flags: allow-oom
-- keys: intake
-- args: limit
-- Returns the documents.
redis.call('LREM', K.intake, 0, '!')
return redis.call('LRANGE', K.intake, 0, tonumber(A.limit) - 1)
