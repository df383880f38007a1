"""The unique keys of one queue of the memory model."""

from __future__ import annotations

from tidework.model.unique import Unique


class Uniques:
    """Which job holds which key, and until when (ms) if it is held for a time."""

    def __init__(self) -> None:
        self.holders: dict[str, tuple[str, int | None]] = {}

    def holder_of(self, key: str, now: int) -> str:
        """The id, '' if the key is free."""
        holder, until = self.holders.get(key, ("", None))
        return "" if until is not None and until <= now else holder

    def hold(self, job_id: str, unique: Unique, now: int) -> None:
        """The job has the key from now on."""
        until = None if unique.ttl is None else now + max(1, round(unique.ttl * 1000))
        self.holders[unique.key] = (job_id, until)

    def free(self, job_id: str, key: str) -> None:
        """Only if the key still names this job."""
        if self.holders.get(key, ("", None))[0] == job_id:
            del self.holders[key]

    def prune(self, now: int, limit: int) -> None:
        """Forget keys whose time is over, a bounded number."""
        times = ((until, key) for key, (_, until) in self.holders.items() if until is not None)
        for _, key in sorted(each for each in times if each[0] <= now)[:limit]:
            del self.holders[key]
