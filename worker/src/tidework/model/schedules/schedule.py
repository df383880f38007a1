"""What the scheduler knows of any schedule, and the plainest one: every so many seconds.

A schedule is a value: frozen, hashable, without a clock of its own. It answers which instants it
fires at; whoever asks brings the time. Invariants of every schedule here:
- instants go in and come out as aware UTC datetimes, fires lie on whole seconds;
- ``next`` is strictly after its argument, ``latest`` and ``between`` look at (after, until];
- an answer takes a bounded time, however many fires the range holds (``between``: per fire).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from tidework.errors import ScheduleError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ONE_SECOND = timedelta(seconds=1)


class DstPolicy(StrEnum):
    """What a cron schedule does where its zone's clock jumps; the words of the field ``dst``.

    ONCE:  as Debian's cron: a fixed time that is skipped fires right after the gap, one that is
           repeated fires in its first pass; a schedule with a wildcard follows the clock
    CLOCK: as Kubernetes: what the clock skips never fires, what it repeats fires twice
    """

    ONCE = "Once"
    CLOCK = "Clock"


class Schedule(Protocol):
    """A set of instants, asked piece by piece."""

    @property
    def fingerprint(self) -> str:
        """Short hash of all that decides the fire times: equal hashes, equal fires."""

    def next(self, after: datetime) -> datetime | None:
        """The first fire strictly after ``after``; None if there is never one again."""

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        """The last fire in (after, until], found without walking the ones before it."""

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The first ``limit`` fires in (after, until], in order."""


@dataclass(frozen=True, slots=True)
class Every:
    """Fires at ``anchor + k * interval`` for every whole k, negative ones too.

    So the anchor sets the phase, not a beginning. Real seconds are counted: no zone, no DST.
    Raises ScheduleError if the interval is under one second, or if interval or anchor are not
    whole seconds, or if the anchor is not in UTC.
    """

    interval: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        if self.anchor.utcoffset() != timedelta(0):
            raise self._refused(
                f"the anchor {self.anchor.isoformat()} is not in UTC",
                "give the anchor as an aware UTC datetime",
            )
        # London in winter has UTC's offset too, but arithmetic in it would be on wall time.
        object.__setattr__(self, "anchor", self.anchor.astimezone(UTC))
        if self.interval < _ONE_SECOND:
            raise self._refused(
                f"the interval is {self.interval}, less than a second", "use 1 s or more"
            )
        if self.interval % _ONE_SECOND:
            raise self._refused(
                f"the interval {self.interval} is not in whole seconds",
                "round it to whole seconds",
            )
        if self.anchor.microsecond:
            raise self._refused(
                f"the anchor {self.anchor.isoformat()} is not on a whole second",
                "drop the fraction of the anchor",
            )

    @property
    def fingerprint(self) -> str:
        # The phase, not the anchor: two anchors a whole number of intervals apart are the same.
        phase = (self.anchor - EPOCH) % self.interval
        return fingerprint_of("every", str(self.interval // _ONE_SECOND), str(phase // _ONE_SECOND))

    def next(self, after: datetime) -> datetime | None:
        require_aware(after, "after")
        return self._fire((after - self.anchor) // self.interval + 1)

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        require_aware(until, "until")
        require_aware(after, "after")
        fire = self._fire((until - self.anchor) // self.interval)
        return fire if fire is not None and fire > after else None

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        return fires_between(self, after, until, limit)

    def _fire(self, k: int) -> datetime | None:
        """Fire number ``k``; None where the calendar of datetime ends."""
        try:
            return self.anchor + k * self.interval
        except OverflowError:
            return None

    def _refused(self, reason: str, hint: str) -> ScheduleError:
        return ScheduleError(f"every {self.interval}", reason, hint=hint)


def fires_between(
    schedule: Schedule, after: datetime, until: datetime, limit: int
) -> list[datetime]:
    """The first ``limit`` fires of ``schedule`` in (after, until], one ``next`` each."""
    require_limit(limit)
    require_aware(until, "until")
    fires: list[datetime] = []
    fire = schedule.next(after)
    while fire is not None and fire <= until:
        fires.append(fire)
        if len(fires) == limit:
            break
        fire = schedule.next(fire)
    return fires


def fingerprint_of(*parts: str) -> str:
    """16 hexadecimal digits of a hash, stable over processes, versions and machines."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def require_aware(moment: datetime, name: str) -> None:
    """A datetime without a zone would be taken for the machine's local time: refuse it."""
    if moment.utcoffset() is None:
        raise ValueError(f"{name} has no time zone: {moment.isoformat()}; pass aware UTC datetimes")


def require_limit(limit: int) -> None:
    """A list of no fires is asked for by mistake: refuse it."""
    if limit < 1:
        raise ValueError(f"limit is {limit}; it has to be 1 or more")
