"""What the scheduler counts, for logs, metrics and tests."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tidework.model.fire import Verdict

# Upper bounds in seconds; one more bucket counts what is above the last.
LATENESS_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Lateness:
    """Histogram of the time from a due instant to its job being visible in Redis."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(LATENESS_BOUNDS) + 1)
        self.count = 0
        self.seconds = 0.0
        self.worst = timedelta(0)

    def observe(self, late: timedelta) -> None:
        """Count one enqueued fire."""
        # A clock that was set back in between makes it negative.
        late = max(late, timedelta(0))
        seconds = late.total_seconds()
        self.buckets[bisect_left(LATENESS_BOUNDS, seconds)] += 1
        self.count += 1
        self.seconds += seconds
        self.worst = max(self.worst, late)


FireListener = Callable[[str, Verdict, datetime, str], None]
"""Told of each verdict: name of the CronTask, verdict, fire time, id of the job or ''."""


@dataclass(slots=True)
class SchedulerCounters:
    """What happened since the start, and who wants to hear of verdicts as they come.

    fenced_writes: requests refused because another leader holds a higher term
    manual_runs:   runs asked for by annotation
    failed_rounds: rounds of a queue ended by trouble with Redis
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    lateness: Lateness = field(default_factory=Lateness)
    fenced_writes: int = 0
    manual_runs: int = 0
    failed_rounds: int = 0
    listeners: list[FireListener] = field(default_factory=list)
