"""What the memory model does when its clock was set back; see scripts/fragments/set_back.lua."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidework.model.job import FINISHED_STATES, JobState

if TYPE_CHECKING:
    from tidework.testing.memory.entry import Entry
    from tidework.testing.memory.store import QueueStore

LONGEST_TOMBSTONE_MS = 600_000
LONGEST_CORDON_MS = 600_000


def latest_span(state: QueueStore) -> int:
    """When the latest span was set that is not over, ms; 0 if there is none."""
    return max(_spans(state), default=0)


def _spans(state: QueueStore) -> Iterator[int]:
    for entry in state.entries.values():
        if entry.span_ms:
            yield entry.span_ms
    yield from (began for _, _, began in state.onces.values())
    yield from (began for _, until, began in state.uniques.holders.values() if until is not None)


def set_back(state: QueueStore, back: int, leases_back: int) -> bool:
    """Spans keep what they had left, by ``back`` ms; leases by ``leases_back``.

    True if a waiting job is due earlier by it.
    """
    now = state.now
    moved = [_set_entry_back(e, now, back, leases_back) for e in state.entries.values()]
    for key, (lease, until, began) in state.onces.items():
        if began > now:
            state.onces[key] = (lease, until - back, min(began - back, now))
    state.uniques.set_back(now, back)
    latest = now + LONGEST_TOMBSTONE_MS
    for job_id, until in state.tombstones.items():
        if until > latest:
            state.tombstones[job_id] = min(until - back, latest)
    for worker, at in state.seen.items():
        if at > now:
            state.seen[worker] = min(at - back, now)
    state.cordons.set_back(now, back, longest_ms=LONGEST_CORDON_MS)
    return any(moved)


def _set_entry_back(entry: Entry, now: int, back: int, leases_back: int) -> bool:
    """True if it waits and is due earlier by it."""
    if entry.state is JobState.RUNNING:
        entry.lease_ms -= leases_back
        return False
    is_earlier = _set_times_back(entry, now, back)
    if entry.unknown_until_ms > now + back:
        until = min(entry.unknown_until_ms - back, now + back)
        entry.unknown_until_ms = max(until, entry.available_ms)
    return is_earlier


def _set_times_back(entry: Entry, now: int, back: int) -> bool:
    if entry.span_ms > now:
        entry.available_ms -= back
        entry.span_ms = min(entry.span_ms - back, now)
        return not entry.held
    if entry.state is JobState.READY and entry.available_ms > now:
        entry.available_ms = now
    elif entry.state in FINISHED_STATES and entry.changed_ms > now:
        entry.changed_ms = min(entry.changed_ms - back, now)
    return False
