"""What happened to the jobs of a queue: counts, waits and run times, by task and over time.

Every number is a sum of transitions within a minute, an hour or a day of UTC, by Redis' clock. A
time in which nothing was counted has no point. Times are kept as histograms whose buckets grow
by the root of 2, so a quantile lies in the same bucket as the exact one: it is off by a factor of
1.41 at most, and mostly by a few percent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Self

ALL_TASKS = "(all)"
OTHER_TASKS = "(others)"
"""Tasks beyond MOST_TASKS, in one sum."""
NO_TASK = "(none)"
"""Documents that did not validate."""
MOST_TASKS = 200
LAST_BUCKET = 55
_ROOT = 0.5**0.5


class Step(Enum):
    """How long a point is, in minutes, and how many of the newest are kept."""

    MINUTE = (1, 180)
    HOUR = (60, 72)
    DAY = (1440, 400)

    def __init__(self, minutes: int, kept: int) -> None:
        self.minutes = minutes
        self.kept = kept

    @property
    def letter(self) -> str:
        """As it is stored."""
        return self.name[0].lower()

    @property
    def length(self) -> timedelta:
        """Of one point."""
        return timedelta(minutes=self.minutes)


def bucket_of(seconds: float) -> int:
    """The bucket of a time: 0 below 1 ms, the last from 37 hours on."""
    ms = seconds * 1000
    if ms < 1:
        return 0
    fraction, exponent = math.frexp(ms)
    return min(2 * exponent - (fraction < _ROOT), LAST_BUCKET)


def bounds_of(bucket: int) -> tuple[float, float]:
    """From and to which time a bucket reaches, in seconds; of the last one the end is infinite."""
    low = 2 ** ((bucket - 1) / 2) / 1000 if bucket else 0.0
    return low, math.inf if bucket == LAST_BUCKET else 2 ** (bucket / 2) / 1000


@dataclass(frozen=True, slots=True)
class Histogram:
    """Times: how many in each bucket that has any, and their sum in seconds."""

    counts: Mapping[int, int] = field(default_factory=dict)
    total: float = 0.0

    @property
    def count(self) -> int:
        """How many times there are."""
        return sum(self.counts.values())

    @property
    def mean(self) -> float | None:
        """Seconds; None if there is nothing."""
        return self.total / self.count if self.counts else None

    def quantile(self, share: float) -> float | None:
        """The time in seconds that ``share`` (0 to 1) of them do not exceed; None if there is
        nothing. Within a bucket times are taken as spread evenly on its logarithmic scale."""
        rest, found = share * self.count, None
        for bucket, count in sorted(self.counts.items()):
            low, high = bounds_of(bucket)
            if math.isinf(high):
                return low
            if rest <= count:
                part = rest / count
                return low * (high / low) ** part if low else high * part
            rest, found = rest - count, high
        return found

    @property
    def in_short(self) -> dict[str, float | None]:
        """Mean and percentiles in seconds, as tables and documents name them."""
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
        return {"mean": self.mean} | {name: self.quantile(at) for name, at in shares.items()}

    def __add__(self, other: Histogram) -> Histogram:
        counts = dict(self.counts)
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        return Histogram(counts, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Totals:
    """What was counted in a time.

    enqueued:  jobs that came, documents of the inbox once they had become one
    started:   claims by a worker; one that was released or lost is claimed again
    succeeded, dead, cancelled: jobs by their end
    failed:    attempts that raised, were stopped by their timeout or refused; retried: those of
               them that another attempt follows
    lost:      attempts whose worker or child died; released: those given back uncounted
    wait:      from when a job was due until it was claimed, for each claim; of a released job
               since it was due first
    run:       how long an attempt ran, whatever its end
    """

    enqueued: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    dead: int = 0
    lost: int = 0
    released: int = 0
    cancelled: int = 0
    wait: Histogram = Histogram()
    run: Histogram = Histogram()

    @property
    def started(self) -> int:
        return self.wait.count

    @property
    def success_rate(self) -> float | None:
        """Of the attempts that succeeded, failed or were lost, the share that succeeded."""
        ended = self.succeeded + self.failed + self.lost
        return self.succeeded / ended if ended else None

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, several: Iterable[Self]) -> Totals:
        """Their sum."""
        return sum(several, Totals())


@dataclass(frozen=True, slots=True)
class Point:
    """What was counted in the minute, hour or day that began at ``at``."""

    at: datetime
    totals: Totals


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one task, or of all, oldest first. Where nothing was counted there is none."""

    task: str
    step: Step
    points: tuple[Point, ...]


def sum_of_series(task: str, step: Step, several: Iterable[Series]) -> Series:
    """Series of several queues as one: the points of one time are added."""
    found: dict[datetime, Totals] = {}
    for series in several:
        for point in series.points:
            found[point.at] = found.get(point.at, Totals()) + point.totals
    return Series(task, step, tuple(Point(at, found[at]) for at in sorted(found)))


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """A task, or ALL_TASKS, OTHER_TASKS or NO_TASK: the last 60 minutes and the last 24 hours,
    each with the minute or hour that has just begun."""

    task: str
    hour: Totals
    day: Totals


def totals_document(found: Totals) -> dict[str, Any]:
    """As JSON: the counts, ``success_rate``, and times in seconds; null where there is nothing to
    tell a rate or a time of."""
    times = ("wait", "run")
    counts = {f.name: getattr(found, f.name) for f in fields(found) if f.name not in times}
    return {
        **counts,
        "started": found.started,
        "success_rate": found.success_rate,
        **{f"{name}_seconds": getattr(found, name).in_short for name in times},
    }
