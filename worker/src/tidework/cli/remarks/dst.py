"""Where the two policies for jumps of a zone's clock differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from tidework.cli.cron_given import Given
from tidework.model.schedules.cron import DstPolicy
from tidework.model.schedules.cron_zone import segments_from

_AROUND = timedelta(days=1)
_FIRES = 10_000


@dataclass(frozen=True, slots=True)
class Jump:
    """At ``instant`` the clock of the zone goes from one reading to another (wall times)."""

    instant: datetime
    before: datetime
    after: datetime


@dataclass(frozen=True, slots=True)
class Difference:
    """Around a jump: the fires that only one of the policies has."""

    jump: Jump
    once: tuple[datetime, ...]
    clock: tuple[datetime, ...]


def jumps(zone: str, after: datetime, until: datetime) -> Iterator[Jump]:
    """Every jump of a zone's clock in (after, until]."""
    for one, two in pairwise(segments_from(zone, after)):
        if two.start > until:
            return
        if one.offset != two.offset:
            yield Jump(two.start, one.wall_end, two.wall_start)


def differences(given: Given, after: datetime, until: datetime) -> list[Difference]:
    """Where Once and Clock fire at different instants. Raises ScheduleError."""
    once, clock = given.rules(DstPolicy.ONCE), given.rules(DstPolicy.CLOCK)
    if once.schedule.fingerprint == clock.schedule.fingerprint:
        return []
    found = []
    for jump in jumps(given.timing.time_zone, after, until):
        begin, end = jump.instant - _AROUND, jump.instant + _AROUND
        by_once, by_clock = (
            set(rules.schedule.between(begin, end, _FIRES)) for rules in (once, clock)
        )
        if by_once != by_clock:
            only = (tuple(sorted(each)) for each in (by_once - by_clock, by_clock - by_once))
            found.append(Difference(jump, *only))
    return found
