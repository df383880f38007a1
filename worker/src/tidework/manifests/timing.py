"""When a CronTask fires: from the fields of its document to a Schedule.

One of schedule, schedules, every and at says when; timeZone, dst, phase and exclude shape it. What
``H`` stands for, and so whether there is such a date at all, depends on the CronTask's name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tidework.errors import ScheduleError
from tidework.manifests.part import TEN_YEARS_S
from tidework.model.schedules.composed import AnyOf, At, Without
from tidework.model.schedules.cron import DstPolicy, Every, Schedule, parse_cron
from tidework.model.schedules.exclusion import parse_exclusions
from tidework.model.schedules.schedule import EPOCH

SPREAD = "H"

_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")

# Any instant does: exclusions of single days end, those of every year come again.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The fields, as documents write them. ``start``: startTime, which intervals count from."""

    schedules: Sequence[str] = ()
    every: str | None = None
    phase: str | None = None
    at: datetime | None = None
    time_zone: str = "UTC"
    dst: DstPolicy = DstPolicy.ONCE
    exclude: Sequence[str] = ()
    start: datetime | None = None

    def schedule(self, spread: str | None) -> Schedule:
        """The instants at which it fires, startTime and endTime not yet applied.

        spread: ``namespace/name``, which H is hashed from. Raises ScheduleError.
        """
        found = self._plain(spread)
        exclusions = parse_exclusions(self.exclude)
        if exclusions.is_empty:
            return found
        left = Without(found, exclusions, self.time_zone)
        if left.next(_ANY_TIME) is None:
            raise ScheduleError(
                ", ".join(self.exclude)[:80],
                "every fire falls on an excluded day",
                hint="leave one, or use suspend to stop it",
            )
        return left

    def _plain(self, spread: str | None) -> Schedule:
        if self.at is not None:
            return At(self.at)
        if self.every is not None:
            return Every(interval_of(self.every), self._anchor(self.every, spread))
        each = [
            parse_cron(text, time_zone=self.time_zone, dst=self.dst, spread=spread)
            for text in self.schedules
        ]
        return each[0] if len(each) == 1 else AnyOf(tuple(each))

    def _anchor(self, every: str, spread: str | None) -> datetime:
        start = self.start or EPOCH
        if self.phase is None:
            return start
        interval = interval_of(every)
        if self.phase == SPREAD:
            if spread is None:
                hint = "on the command line give --name NAMESPACE/NAME"
                raise ScheduleError(SPREAD, "H is spread by a name, and there is none", hint=hint)
            digest = hashlib.sha256(f"{spread}\nphase".encode()).digest()
            seconds = int.from_bytes(digest[:8], "big") % int(interval.total_seconds())
            return start + timedelta(seconds=seconds)
        phase = duration_of(self.phase)
        if phase >= interval:
            hint = f"fires come every {every}: use less, or {SPREAD} to spread by name"
            raise ScheduleError(self.phase, "the phase reaches the next fire", hint=hint)
        return start + phase


def interval_of(text: str) -> timedelta:
    """Read ``1d2h3m4s``, any part of it, of 1 s to ten years. Raises ScheduleError."""
    found = duration_of(text)
    if not 1 <= found.total_seconds() <= TEN_YEARS_S:
        raise ScheduleError(text[:40], "has to lie between 1s and 3650d", hint="")
    return found


def duration_of(text: str) -> timedelta:
    """Read ``1d2h3m4s``, any part of it. Raises ScheduleError."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise ScheduleError(
            text[:40], "is not an interval", hint="write it as 90s, 5m, 1h30m or 1d"
        )
    days, hours, minutes, seconds = (
        int(part) if part and len(part) <= 12 else _absent(part) for part in found.groups()
    )
    # A number beyond all bounds stays one, without the cost of reading it.
    total = min(((days * 24 + hours) * 60 + minutes) * 60 + seconds, TEN_YEARS_S + 1)
    return timedelta(seconds=total)


def _absent(part: str | None) -> int:
    return TEN_YEARS_S + 1 if part else 0


def summary_of(spec: Mapping[str, Any]) -> str:
    """When the CronTask of this spec, as its document has it, fires: short, for lists."""
    found = spec.get("schedule") or "; ".join(spec.get("schedules") or ())
    if spec.get("every"):
        found = f"every {spec['every']}"
        found += f" phase {spec['phase']}" if spec.get("phase") else ""
    elif spec.get("at"):
        found = f"at {spec['at']}"
    return f"{found} (not on {len(spec['exclude'])} excluded)" if spec.get("exclude") else found


def reason_of(error: ScheduleError) -> str:
    """What is wrong, as documents are told: the text, the place in it, the way out."""
    place = "" if error.position is None else f" at position {error.position}"
    hint = f"; {error.hint}" if error.hint else ""
    return f"{error.expression!r}{place}: {error.reason}{hint}"
