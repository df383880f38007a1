"""The unique keys of one queue of the memory model."""

from __future__ import annotations

from tidework.model.unique import Unique


class Uniques:
    """Which job holds which key, until when if it is held for a time, and since when (ms)."""

    def __init__(self) -> None:
        self.holders: dict[str, tuple[str, int | None, int]] = {}

    def holder_of(self, key: str, now: int) -> str:
        """The id, '' if the key is free."""
        holder, until, _ = self.holders.get(key, ("", None, 0))
        return "" if until is not None and until <= now else holder

    def hold(self, job_id: str, unique: Unique, now: int) -> None:
        """The job has the key from now on."""
        until = None if unique.ttl is None else now + max(1, round(unique.ttl * 1000))
        self.holders[unique.key] = (job_id, until, now)

    def free(self, job_id: str, key: str) -> None:
        """Only if the key still names this job."""
        if self.holders.get(key, ("", None, 0))[0] == job_id:
            del self.holders[key]

    def prune(self, now: int, limit: int) -> None:
        """Forget keys whose time is over, a bounded number."""
        times = ((until, key) for key, (_, until, _) in self.holders.items() if until is not None)
        for _, key in sorted(each for each in times if each[0] <= now)[:limit]:
            del self.holders[key]

    def set_back(self, now: int, back: int) -> None:
        """The clock was, by ``back``: keys are held for as long as they were to be."""
        for key, (job_id, until, began) in self.holders.items():
            if until is not None and began > now:
                self.holders[key] = (job_id, until - back, min(began - back, now))
