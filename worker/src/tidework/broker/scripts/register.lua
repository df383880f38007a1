-- Adds a queue to the list of all queues, which lies on a server of its own in a Cluster.
-- flags: allow-oom
-- keys: registry
-- args: entry
-- Returns 1, or 0 if it was there.
return redis.call('SADD', K.registry, A.entry)
