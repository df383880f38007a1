"""One CronTask under observation: its object, what it is judged by, and what we wrote last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidework.scheduler.spec import CronSpec
from tidework_operator.cluster import Object
from tidework_operator.crontasks.judgement import Subject


@dataclass(slots=True)
class Watched:
    """found: the inventory's object; wrote_at: monotonic, None before the first write."""

    found: Object
    subject: Subject
    wrote_at: float | None = None
    _written: Object | None = None
    _written_over: str = ""

    @property
    def namespace(self) -> str:
        namespace: str = self.found["metadata"]["namespace"]
        return namespace

    @property
    def name(self) -> str:
        name: str = self.found["metadata"]["name"]
        return name

    @property
    def spec(self) -> CronSpec | None:
        """What the scheduler is given; None while it cannot be served."""
        return self.subject.reading.spec if self.subject.is_served else None

    @property
    def version(self) -> str:
        """The resourceVersion that we know of last."""
        return _version(self._last)

    def status(self) -> Mapping[str, Any]:
        """Its status as far as we know: what we wrote, until the inventory knows better."""
        status: Mapping[str, Any] = self._last.get("status") or {}
        return status

    def note_written(self, answer: Object, at: float) -> None:
        """The API server stored our status; ``answer`` is the object as it is now."""
        self.wrote_at = at
        self._written = answer
        self._written_over = _version(self.found)

    @property
    def _last(self) -> Object:
        if self._written is not None and self._written_over == _version(self.found):
            return self._written
        return self.found

    def is_judged_like(self, subject: Subject) -> bool:
        """Would the same be said of it? Other queues of the namespace may come and go."""
        mine, other = self.subject, subject
        return (
            mine.reading is other.reading
            and mine.has_queue == other.has_queue
            and mine.hard_timeout == other.hard_timeout
        )


def _version(found: Object) -> str:
    version: str = found["metadata"].get("resourceVersion", "")
    return version
