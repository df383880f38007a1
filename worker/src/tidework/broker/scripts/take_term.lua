-- Raises the term: whoever led the queue until now can no longer write.
-- flags: allow-oom
-- keys: term
-- Returns the new term.
return redis.call('INCR', K.term)
