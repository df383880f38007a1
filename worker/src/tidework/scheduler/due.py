"""Which fires of a schedule are due, and what is to become of each. Pure: no clock, no I/O.

Every instant after the watermark and up to now gets one planned verdict, in order:
- a gap of at most a minute (a takeover) is replayed in full;
- after a longer one the catch-up policy picks one instant: fires from it on are enqueued, older
  ones are missed. The pick is made once per gap, so that plans made in steps agree;
- a fire later than its starting deadline is missed, whatever the policy.
Instants before ``start`` or after ``end`` do not exist: they get no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice

from tidework.model.fire import Verdict
from tidework.model.schedules.schedule import Schedule, fingerprint_of

REPLAYED_IN_FULL = timedelta(seconds=60)

# While a fire is so little late, only it is planned and the schedule is not asked for a second
# one: the jobs of a crowded second become visible first, the searching comes after.
_ONE_AT_A_TIME = timedelta(seconds=5)

_SECOND = timedelta(seconds=1)


class CatchUpMode(StrEnum):
    """Which of the fires missed in a long gap still run."""

    LATEST = "Latest"
    ALL = "All"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class CatchUp:
    """limit: at most so many, the newest (All); window: none that is older."""

    mode: CatchUpMode = CatchUpMode.LATEST
    limit: int | None = None
    window: timedelta | None = None


@dataclass(frozen=True, slots=True)
class FireRules:
    """All that decides when a CronTask fires. ``start`` and ``end`` are inclusive."""

    schedule: Schedule
    deadline: timedelta | None = None
    catch_up: CatchUp = field(default_factory=CatchUp)
    start: datetime | None = None
    end: datetime | None = None

    @property
    def fingerprint(self) -> str:
        """Equal for equal sets of instants; deadline and catch-up do not move an instant."""
        bounds = ("" if at is None else at.isoformat() for at in (self.start, self.end))
        return fingerprint_of(self.schedule.fingerprint, *bounds)

    def next(self, after: datetime) -> datetime | None:
        """The first instant strictly after ``after``; None if there is never one again."""
        if self.start is not None:
            after = max(after, self.start - _SECOND)
        found = self.schedule.next(after)
        return found if found is None or self.end is None or found <= self.end else None

    def upcoming(self, after: datetime, count: int) -> tuple[datetime, ...]:
        """The next ``count`` instants after ``after``, fewer if there are no more."""
        found: list[datetime] = []
        at = self.next(after)
        while at is not None and len(found) < count:
            found.append(at)
            at = self.next(at)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap longer than a minute: of the fires up to ``until``, those at or after ``resume`` are
    enqueued and the older ones are missed; None: all are missed."""

    until: datetime
    resume: datetime | None


@dataclass(frozen=True, slots=True)
class PlannedFire:
    """One due instant and the verdict wanted for it: ENQUEUED or one of MISSED."""

    at: datetime
    wanted: Verdict


@dataclass(frozen=True, slots=True)
class Plan:
    """The next due instants, oldest first; ``gap`` belongs into the plan that follows this one."""

    fires: tuple[PlannedFire, ...]
    gap: Gap | None


def is_long_gap(first: datetime, now: datetime) -> bool:
    """Is the first undecided fire so late that the catch-up policy has a say?"""
    return now - first > REPLAYED_IN_FULL


def plan_fires(
    rules: FireRules, first: datetime, now: datetime, *, limit: int, gap: Gap | None = None
) -> Plan:
    """Plan at most ``limit`` due fires, from ``first`` on, which is due and undecided.

    gap: what the plan before this one came to, None at first.
    """
    # A gap that ends in the future is of a clock that was set back since.
    if gap is None or not first <= gap.until <= now:
        gap = _find_gap(rules, first, now)
    instants = [first]
    if limit > 1 and now - first > _ONE_AT_A_TIME:
        # Not beyond the gap: what comes after it is judged by the next plan, at its own time.
        until = _last_due(rules, now if gap is None else gap.until)
        instants += rules.schedule.between(first, until, limit - 1)
    return Plan(tuple(PlannedFire(at, _wanted(rules, at, now, gap)) for at in instants), gap)


def _wanted(rules: FireRules, at: datetime, now: datetime, gap: Gap | None) -> Verdict:
    if rules.deadline is not None and now - at > rules.deadline:
        return Verdict.MISSED_DEADLINE
    if gap is not None and (gap.resume is None or at < gap.resume):
        return Verdict.MISSED_CATCH_UP
    return Verdict.ENQUEUED


def _find_gap(rules: FireRules, first: datetime, now: datetime) -> Gap | None:
    if not is_long_gap(first, now):
        return None
    return Gap(until=now, resume=_resume(rules, first, now))


def _resume(rules: FireRules, first: datetime, now: datetime) -> datetime | None:
    """The oldest missed instant that the catch-up policy still runs."""
    policy = rules.catch_up
    if policy.mode is CatchUpMode.NONE:
        return None
    limit = 1 if policy.mode is CatchUpMode.LATEST else policy.limit
    oldest = first
    if limit is not None:
        newest = _newest_first(rules, first, now)
        oldest = min(islice(newest, limit), default=now + _SECOND)
    return oldest if policy.window is None else max(oldest, now - policy.window)


def _newest_first(rules: FireRules, first: datetime, now: datetime) -> Iterator[datetime]:
    """The instants from now back to ``first``."""
    before_first = first - _SECOND
    at = rules.schedule.latest(_last_due(rules, now), before_first)
    while at is not None:
        yield at
        at = rules.schedule.latest(at - _SECOND, before_first)


def _last_due(rules: FireRules, now: datetime) -> datetime:
    return now if rules.end is None else min(now, rules.end)


def from_unix(second: int) -> datetime:
    """A watermark or fire as an aware UTC moment."""
    return datetime.fromtimestamp(second, UTC)


def to_unix(moment: datetime) -> int:
    """The Unix second in which ``moment`` lies."""
    return int(moment.timestamp() // 1)
