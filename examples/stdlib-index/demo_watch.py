"""What `tidework dev` told so far, as far as the demonstration has to know it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

QUEUE = "index"


@dataclass(frozen=True, slots=True)
class ScaleStep:
    """One decision of the autoscaler: workers wanted before and after, and why."""

    before: int
    after: int
    reason: str


@dataclass(slots=True)
class Watch:
    """Fed with every event.

    redis_url: of the embedded server, '' until dev is up
    run:       id of the index job that the CronTask enqueued, '' until then
    steps:     the decisions about the queue's workers, in their order
    workers:   worker processes that were alive when dev last counted them
    """

    redis_url: str = ""
    run: str = ""
    steps: list[ScaleStep] = field(default_factory=list)
    workers: int = 0

    def note(self, event: Mapping[str, Any]) -> None:
        """Take in one event; those of no concern are passed over."""
        match event:
            case {"event": "started", "redis_url": str(url)}:
                self.redis_url = url
            case {"event": "fired", "verdict": "enqueued", "job_id": str(job)} if not self.run:
                self.run = job
            case {"event": "scaled", "queue": queue, "after": after} if queue == QUEUE:
                reason = str(event.get("reason") or "")
                self.steps.append(ScaleStep(event["before"], after, reason))
            case {"event": "status", "queue": queue, "workers": workers} if queue == QUEUE:
                self.workers = workers

    @property
    def went_down(self) -> bool:
        """Have there been workers, and are there none any more?"""
        return bool(self.steps) and self.steps[-1].after == 0 and self.workers == 0
