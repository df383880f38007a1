"""Everything that a server keeps of one queue, for comparing it with itself later.

Times that a repeated request may move on are left out; every other byte counts. Parts that this
module does not know are compared as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import redis

from tidework.broker.documents import MARKER
from tidework.broker.keys import NAMESPACE_PARTS, REGISTRY, queue_key
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.identity import QueueName

MOVING_SCORES = frozenset({"leases", "seen", "draining", "tasks"})
"""Members count; when a lease expires or somebody was last seen does not."""
MOVING = frozenset({"guard"})
"""Signs of life."""
COUNTED_REPEATS = frozenset(
    {
        b"stale_requests",
        b"stale_terms",
        b"repeated",
        b"known",
        b"deduplicated",
        b"cancel_requests",
        b"replay_requests",
        b"purge_requests",
    }
)
"""Counters of requests, repeated and late ones among them; the others are of transitions."""
ORDER = b"last_"
"""Fields of ``meta`` that tell late requests from newer ones."""

Dump = dict[str, Any]


async def dump_queue(broker: RedisBroker, client: redis.Redis, queue: QueueName) -> Dump:
    """Part of the queue -> what it holds; ``states``: job id -> what the broker says of it."""
    prefix = f"tw1:{{{queue}}}:"
    found: Dump = {"registered": bool(client.sismember(REGISTRY, str(queue)))}
    for key in sorted(client.scan_iter(prefix + "*", count=1000)):
        part = key.decode().removeprefix(prefix)
        if part not in MOVING:
            found[part] = _content(client, key, part)
    for part in NAMESPACE_PARTS:
        found[part] = _content(client, queue_key(queue, part).encode(), part)
    inbox, intake = found.pop("inbox", []), found.pop("intake", [])
    # Whether a document lies here or there only says who looks at it next.
    found["documents"] = sorted(raw for raw in inbox + intake if raw != MARKER)
    found["wakes"] = bool(inbox)
    found["markers taken"] = intake.count(MARKER)
    found["states"] = {
        job_id.decode(): await broker.get_job(queue, job_id.decode())
        for job_id in sorted(found.get("jobs", {}))
    }
    return found


def _content(client: redis.Redis, key: bytes, part: str) -> Any:
    kind = client.type(key)
    if kind == b"string":
        return client.get(key)
    if kind == b"list":
        return client.lrange(key, 0, -1)
    if kind == b"hash":
        fields: dict[Any, Any] = client.hgetall(key)
        ignored = {name for name in fields if name in COUNTED_REPEATS or name.startswith(ORDER)}
        return {name: fields[name] for name in sorted(fields.keys() - ignored)}
    if kind == b"zset":
        members = {name: client.zscore(key, name) for name in scored(client, key)}
        return sorted(members) if part in MOVING_SCORES else members
    if kind == b"none":
        return None
    assert kind == b"set", f"{key!r} is a {kind!r}: teach this module to read it"
    return sorted(client.smembers(key))


def scored(client: redis.Redis, key: bytes | str) -> list[Any]:
    """Members of a sorted set, in order."""
    return list(client.zrange(key, 0, -1))


def differences(
    before: Dump, after: Dump, skips: Collection[str] = ()
) -> dict[str, tuple[Any, Any]]:
    """Part -> (before, after) of what is not equal, without the parts that do not count."""
    parts = sorted((before.keys() | after.keys()) - set(skips))
    return {
        part: (before.get(part), after.get(part))
        for part in parts
        if before.get(part) != after.get(part)
    }
