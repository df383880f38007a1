"""Blocks that are done once per key, in the memory model."""

from __future__ import annotations

from datetime import timedelta

from tidework.broker.answers import OnceAnswer
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.lease import Lease
from tidework.testing.memory.calls import MemoryCalls
from tidework.testing.memory.state import QueueState

LOOK_MS = 3_600_000
_MS = timedelta(milliseconds=1)


class MemoryOnce(MemoryCalls):
    """``onces`` of a queue: by key the lease of who is at it, None if it is done, until when
    and since when (ms)."""

    async def once_begin(self, queue: QueueName, lease: Lease, key: str) -> OnceAnswer:
        state = self._open(queue)
        if not _stands(state, lease):
            return OnceAnswer.LOST
        if not _counts(state, key):
            state.onces[key] = (lease, state.now + LOOK_MS, state.now)
            return OnceAnswer.FIRST
        holder = state.onces[key][0]
        if holder is None:
            return OnceAnswer.DONE
        return OnceAnswer.FIRST if holder == lease else OnceAnswer.PENDING

    async def once_end(
        self, queue: QueueName, lease: Lease, key: str, *, ttl: timedelta | None
    ) -> bool:
        state = self._open(queue)
        if key not in state.onces:
            return False
        holder = state.onces[key][0]
        if holder != lease:
            return holder is None and ttl is not None
        if ttl is None:
            del state.onces[key]
        else:
            state.onces[key] = (None, state.now + max(1, ttl // _MS), state.now)
        return True


def prune_onces(state: QueueState, limit: int) -> None:
    """Forget what is over, a bounded number; look again later at marks that still count."""
    over = sorted((until, key) for key, (_, until, _) in state.onces.items() if until <= state.now)
    for _, key in over[:limit]:
        if _counts(state, key):
            state.onces[key] = (state.onces[key][0], state.now + LOOK_MS, state.now)
        else:
            del state.onces[key]


def _stands(state: QueueState, lease: Lease) -> bool:
    entry = state.entries.get(lease.job_id)
    running = entry is not None and entry.state is JobState.RUNNING
    return running and entry is not None and entry.token == lease.token


def _counts(state: QueueState, key: str) -> bool:
    if key not in state.onces:
        return False
    holder, until, _ = state.onces[key]
    return until > state.now if holder is None else _stands(state, holder)
