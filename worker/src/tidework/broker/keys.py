"""Every Redis key of Tidework, built here and nowhere else.

All keys of a queue share the hash tag ``{namespace/queue}``, hence one slot of a Cluster. The
number in the prefix is the layout version.

    part        type   content
    meta        hash   layout version, least layout that a client has to serve, durability, pause,
                       version of the application that a worker announced last
    inbox       list   JSON documents from any program; taken from the right
    intake      list   documents taken from the inbox, not yet validated
    jobs        hash   job id -> task, zero byte, envelope (opaque bytes)
    records     hash   job id -> packed state (scripts/fragments/record.lua); absent until claimed
    ready       zset   job id by priority, then due time
    scheduled   zset   job id by due time, then priority
    spans       zset   what waits or is held for a span of time, by the ms when that began: 'j' and
                       id of scheduled, 'u' and key of unique_ttls, 'o' and key of once_ttls
    leases      zset   job id by expiry, ms
    holders     hash   worker incarnation -> number of leases it holds
    details     hash   job id -> JSON result or last error
    history     hash   job id -> how its deliveries ended that did not succeed (history.py)
    progress    hash   job id -> what it says of its progress, positions of its checkpoints
    succeeded   zset   job id by end, ms;  dead, cancelled likewise
    tombstones  zset   id of a job pruned early, by the ms until which it may not come back
    index       zset   ended jobs by task and by error (scripts/fragments/index.lua), score 0
    errors      zset   fingerprint of an error, by its number of dead letters
    uniques     hash   unique key -> job that holds it;  unique_ttls: zset of those held for a time
    tasks       zset   task that a worker has announced, by when (ms)
    unknown     zset   job that was given back since its worker did not know its task, by due ms;
                       unknown_until: zset of the same by when it waits for one that does no longer
    onces       hash   key of a block that is to be done once -> done, or the lease of who is at it;
                       once_ttls: zset of the same by ms (scripts/fragments/once.lua)
    replacing   hash   links between a job told to stop and the one that replaces it
    counters    hash   name -> sum of transitions
    services    hash   task -> moving average of its seconds
    tallies     string lines of what was counted lately (scripts/fragments/tallies.lua)
    points      hash   sums of those by task and minute, hour, day (scripts/fragments/points.lua)
    point_tasks zset   task that has points, by the last minute in which it was counted
    guard       hash   run id of the server, last sign of life, time until which nobody reaps
    draining    zset   incarnation of a cordoned worker, by the ms until which it is, plus BY_PERSON
                       (broker/cordons.py) if a person did so
    replies     hash   incarnation -> last sequence and its reply; dropped with seen
    presence    hash   incarnation -> JSON, until it left;  seen: zset of the same by last beat, ms
    stack_requests  hash  incarnation -> numbers of the last request for its stacks, and answer
    stacks      hash   incarnation -> its number and JSON, for a minute
    term        string number of the current leadership
    leader      string holder, with expiry (only without Kubernetes)
    crontasks   hash   CronTask uid -> JSON document (mirror)
    crons       hash   uid/field -> watermark, fingerprint, verdict counts...
    runs        zset   uid|job id of unfinished runs, score 0
    scaling     string what the autoscaler decided last: ms, a blank, JSON (model/scaled.py)
    decisions   list   the last 100 that changed something, newest first
    fires       hash   uid -> its last fires and runs, a line each (fires.py)

A namespace has a key of its own, under the tag ``{namespace/}``:

    acts        zset   what people did by the API (acts.py), by number
"""

from __future__ import annotations

from tidework.model.identity import QueueName

LAYOUT = 1
REGISTRY = "tw1:registry"

QUEUE_PARTS = (
    "meta",
    "inbox",
    "intake",
    "jobs",
    "records",
    "ready",
    "scheduled",
    "spans",
    "leases",
    "holders",
    "details",
    "history",
    "progress",
    "succeeded",
    "dead",
    "cancelled",
    "tombstones",
    "index",
    "errors",
    "uniques",
    "unique_ttls",
    "tasks",
    "unknown",
    "unknown_until",
    "onces",
    "once_ttls",
    "replacing",
    "counters",
    "services",
    "tallies",
    "points",
    "point_tasks",
    "guard",
    "draining",
    "replies",
    "presence",
    "seen",
    "stack_requests",
    "stacks",
    "term",
    "leader",
    "crontasks",
    "crons",
    "runs",
    "fires",
    "scaling",
    "decisions",
)


SHARED_PARTS = {"registry": REGISTRY}
"""What a script may name as a part, though it is one key for all queues."""


NAMESPACE_PARTS = ("acts",)
"""What a script may name as a part, though all queues of the namespace share it."""


def queue_key(queue: QueueName, part: str) -> str:
    """The key of one part of a queue. Raises KeyError for an unknown part."""
    if part in SHARED_PARTS:
        return SHARED_PARTS[part]
    if part in NAMESPACE_PARTS:
        return f"tw1:{{{queue.namespace}/}}:{part}"
    if part not in QUEUE_PARTS:
        raise KeyError(part)
    return f"tw1:{{{queue}}}:{part}"
