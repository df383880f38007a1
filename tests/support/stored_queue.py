"""What a server keeps of one queue, decoded without the product's own decoders.

For tests that compare a whole queue with the memory model, and for those that look for leaks.
A key that is absent reads as empty, as it does for the scripts.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import redis

from tidework.broker.keys import QUEUE_PARTS, queue_key
from tidework.model.identity import QueueName
from tidework.model.values.kept_result import is_refused

HELD = 9 * 10**15
"""Score among the scheduled jobs of one that waits for another to end."""
BY_PRIORITY = 10**13
STATES = {
    b"W": "waiting",
    b"R": "running",
    b"S": "succeeded",
    b"D": "dead",
    b"C": "cancelled",
}
ENDED = ("succeeded", "dead", "cancelled")
_HEAD = struct.Struct(">cBHHHHBBddd")

Scores = dict[str, int]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """See scripts/fragments/record.lua. ``unique`` begins with its mode."""

    state: str
    priority: int
    attempt: int = 0
    deliveries: int = 0
    losses: int = 0
    releases: int = 0
    cancel: int = 0
    raw: int = 0
    available: int = 0
    changed: int = 0
    started: int = 0
    token: str = ""
    cron: str = ""
    unique: str = ""
    task: str = ""
    fingerprint: str = ""


@dataclass(slots=True)
class StoredQueue:
    """A field per part of ``keys.QUEUE_PARTS``. Of replies only whose they are."""

    meta: dict[str, str]
    inbox: list[bytes]
    intake: list[bytes]
    jobs: dict[str, tuple[str, bytes]]
    records: dict[str, StoredRecord]
    ready: Scores
    scheduled: Scores
    spans: Scores
    leases: Scores
    holders: dict[str, int]
    details: dict[str, Any]
    history: dict[str, str]
    progress: dict[str, str]
    succeeded: Scores
    dead: Scores
    cancelled: Scores
    tombstones: Scores
    index: Scores
    errors: Scores
    uniques: dict[str, str]
    unique_ttls: Scores
    tasks: Scores
    unknown: Scores
    unknown_until: Scores
    onces: dict[str, str]
    once_ttls: Scores
    replacing: dict[str, str]
    counters: dict[str, int]
    services: dict[str, float]
    tallies: str
    points: dict[str, str]
    point_tasks: Scores
    guard: dict[str, str]
    draining: Scores
    replies: frozenset[str]
    presence: dict[str, Any]
    seen: Scores
    stack_requests: dict[str, tuple[int, ...]]
    stacks: dict[str, Any]
    term: int
    leader: str
    crontasks: dict[str, bytes]
    crons: dict[str, str]
    runs: Scores
    fires: dict[str, str]
    scaling: str
    decisions: list[bytes]

    def record_of(self, job_id: str) -> StoredRecord | None:
        """The record of a job; of one that was never claimed what its score says."""
        found = self.records.get(job_id)
        if found is not None:
            return found
        if job_id in self.ready:
            priority, due = divmod(self.ready[job_id], BY_PRIORITY)
        elif job_id in self.scheduled:
            due, priority = divmod(self.scheduled[job_id], 10)
        else:
            return None
        return StoredRecord("waiting", priority, available=due)

    def differences(self, other: StoredQueue) -> dict[str, tuple[Any, Any]]:
        """Part -> (here, there) of what is not equal; of mappings the entries that differ."""
        found: dict[str, tuple[Any, Any]] = {}
        for each in fields(self):
            here, there = getattr(self, each.name), getattr(other, each.name)
            if here == there or (each.name == "services" and _is_close(here, there)):
                continue
            if isinstance(here, dict):
                names = {n for n in here | there if here.get(n, n) != there.get(n, n)}
                here = {n: here[n] for n in sorted(names) if n in here}
                there = {n: there[n] for n in sorted(names) if n in there}
            found[each.name] = (here, there)
        return found


def _is_close(here: dict[str, float], there: dict[str, float]) -> bool:
    """Lua and Python need not round alike."""
    return here.keys() == there.keys() and all(
        math.isclose(here[name], there[name], rel_tol=1e-9) for name in here
    )


def read_queue(client: redis.Redis, queue: QueueName) -> StoredQueue:
    """A queue as it is now, in one step: others may be at work on it."""
    keys = [queue_key(queue, part) for part in QUEUE_PARTS]
    kinds = [KINDS[part] for part in QUEUE_PARTS]
    found = client.eval(_READ, len(keys), *keys, *kinds)
    parts = zip(QUEUE_PARTS, found, strict=True)
    return StoredQueue(**{part: _decode(part, raw) for part, raw in parts})


_READ = """
local commands = {hash = 'HGETALL', names = 'HKEYS', string = 'GET'}
local found = {}
for i, key in ipairs(KEYS) do
  if ARGV[i] == 'zset' then
    found[i] = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif ARGV[i] == 'list' then
    found[i] = redis.call('LRANGE', key, 0, -1)
  else
    found[i] = redis.call(commands[ARGV[i]], key) or ''
  end
end
return found
"""


def _decode(part: str, raw: Any) -> Any:
    match KINDS[part]:
        case "zset":
            pairs = zip(raw[::2], raw[1::2], strict=True)
            return {member.decode(): int(float(score)) for member, score in pairs}
        case "list":
            return raw
        case "hash":
            pairs = zip(raw[::2], raw[1::2], strict=True)
            if part == "jobs":
                return {name.decode(): _read_job(name, value) for name, value in pairs}
            read = _HASHES.get(part, bytes.decode)
            return {name.decode(): read(value) for name, value in pairs}
        case "names":
            return frozenset(name.decode() for name in raw)
    text = raw.decode()
    return int(text or 0) if part == "term" else text


def _read_record(packed: bytes) -> StoredRecord:
    state, *numbers = _HEAD.unpack_from(packed)
    texts = packed[_HEAD.size :].split(b"\0")
    assert len(texts) == 6, packed
    assert texts.pop() == b"", packed
    small, times = numbers[:-3], (int(ms) for ms in numbers[-3:])
    return StoredRecord(STATES[state], *small, *times, *(text.decode() for text in texts))


def _read_job(job_id: bytes, stored: bytes) -> tuple[str, bytes]:
    task, _, body = stored.partition(b"\0")
    if task and body.startswith(b","):
        body = b'{"v":1,"id":"' + job_id + b'"' + body
    return task.decode(), body


_HASHES: Mapping[str, Any] = {
    "records": _read_record,
    "holders": int,
    "details": lambda raw: raw.decode() if is_refused(raw) else json.loads(raw),
    "counters": int,
    "services": float,
    "presence": lambda raw: json.loads(raw) if raw else None,
    "stack_requests": lambda raw: tuple(map(int, raw.split())),
    "stacks": lambda raw: (int(raw.split()[0]), json.loads(raw.partition(b" ")[2])),
    "crontasks": bytes,
}

KINDS: dict[str, str] = {
    **dict.fromkeys(QUEUE_PARTS, "hash"),
    **dict.fromkeys(("inbox", "intake", "decisions"), "list"),
    **dict.fromkeys(("term", "leader", "tallies", "scaling"), "string"),
    "replies": "names",
    **dict.fromkeys(
        [
            "ready",
            "scheduled",
            "spans",
            "leases",
            "succeeded",
            "dead",
            "cancelled",
            "tombstones",
            "index",
            "errors",
            "point_tasks",
            "unique_ttls",
            "once_ttls",
            "tasks",
            "unknown",
            "unknown_until",
            "draining",
            "seen",
            "runs",
        ],
        "zset",
    ),
}
"""How each part is kept."""
