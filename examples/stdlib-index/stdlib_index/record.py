"""What a run has found so far, kept in Redis by the application itself: it is the counter.

Jobs run at least once, so a plain counter would count a file twice when its job is run again.
The record counts the members of a hash with one field per file: whoever writes a field again
changes nothing. Its keys end by themselves, and are not among Tidework's own (``tw1:``).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

import redis

from stdlib_index.measuring import Measurement

KEPT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a file has no numbers: ``FILE:LINE: reason``."""

    reason: str


Entry = Measurement | Fault


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a run found.

    entries: file -> its numbers or its fault; missing: files that nothing is known of
    """

    entries: Mapping[str, Entry]
    missing: tuple[str, ...]


class RunRecord:
    """The record of one run; each method is one round trip."""

    def __init__(self, connection: redis.Redis, run: str) -> None:
        self._connection = connection
        self._expected = f"stdlib-index:{run}:expected"
        self._entries = f"stdlib-index:{run}:entries"

    def expect(self, names: Iterable[str]) -> None:
        """Say which files the run has; to say it again changes nothing."""
        with self._connection.pipeline() as step:
            step.sadd(self._expected, *names)
            step.expire(self._expected, KEPT_FOR)
            step.execute()

    def note(self, name: str, entry: Entry) -> bool:
        """Keep what became of a file. True if now every file of the run has been noted.

        True comes once at least, and again for a file that is noted again after that.
        """
        with self._connection.pipeline() as step:
            step.hset(self._entries, name, _encode(entry))
            step.expire(self._entries, KEPT_FOR)
            step.hlen(self._entries)
            step.scard(self._expected)
            *_, noted, expected = step.execute()
        return bool(noted >= expected > 0)

    def read(self) -> Findings | None:
        """Everything noted; None if the run is unknown, or older than KEPT_FOR."""
        with self._connection.pipeline() as step:
            step.smembers(self._expected)
            step.hgetall(self._entries)
            expected, entries = step.execute()
        if not expected:
            return None
        return Findings(
            entries={name: _decode(text) for name, text in sorted(entries.items())},
            missing=tuple(sorted(set(expected) - set(entries))),
        )


@functools.cache
def connect(url: str) -> redis.Redis:
    """The process's connection; made at the first job, so that no two processes share one."""
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=10)


def _encode(entry: Entry) -> str:
    return json.dumps(asdict(entry))


def _decode(text: str) -> Entry:
    found = json.loads(text)
    return Fault(**found) if "reason" in found else Measurement(**found)
