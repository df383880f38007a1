"""What a person wants to know of a CronTask, above all: why does it not fire? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidework.model.fire import ConcurrencyPolicy, CronRecord, Suspension, Verdict
from tidework.scheduler.due import from_unix
from tidework.scheduler.spec import CronSpec

NEXT_FIRES = 5

# A watermark of this second, or of one that a slightly faster clock decided, is no news.
_AHEAD = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class CronStatus:
    """A CronTask at one moment.

    suspended:   by its document, or by a person (suspension)
    next_fires:  at most five, none while it does not fire; after a suspension that ends by itself
    active:      ids of runs that have not ended
    by_hand:     runs that people asked for, which are no fires
    reason:      in plain words why it does not fire (or not at its next time), '' if it does
    led:         does this scheduler lead its queue; trouble: why Redis cannot be used, '' if it can
    clock_skew:  our clock minus that of Redis, None before it was measured
    """

    uid: str
    namespace: str
    name: str
    queue: str
    suspended: bool
    next_fires: tuple[datetime, ...]
    last_fire: datetime | None
    last_job: str
    verdicts: Mapping[Verdict, int]
    active: tuple[str, ...]
    reason: str
    clock_skew: timedelta | None = None
    led: bool = True
    trouble: str = ""
    by_hand: int = 0
    suspension: Suspension | None = None


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What does not lie in the CronTask: led = this scheduler leads its queue; trouble = why Redis
    cannot be used, '' if it can."""

    now: datetime
    led: bool
    trouble: str = ""
    clock_skew: timedelta | None = None


def describe(spec: CronSpec, record: CronRecord | None, circumstances: Circumstances) -> CronStatus:
    """Put spec, record and circumstances together."""
    ended = _ended(spec, record)
    last = None if record is None else record.last_fire
    suspension = _suspension(record, circumstances.now)
    return CronStatus(
        uid=spec.uid,
        namespace=spec.queue.namespace,
        name=spec.name,
        queue=spec.queue.name,
        suspended=spec.suspend or suspension is not None,
        next_fires=() if ended else _next_fires(spec, record, circumstances.now),
        last_fire=None if last is None else from_unix(last),
        last_job="" if record is None else record.last_job,
        verdicts=dict.fromkeys(Verdict, 0) if record is None else dict(record.verdicts),
        active=() if record is None else record.active,
        reason=ended or _in_words(suspension) or _obstacle(spec, record, circumstances),
        clock_skew=circumstances.clock_skew,
        led=circumstances.led,
        trouble=circumstances.trouble,
        by_hand=0 if record is None else record.by_hand,
        suspension=suspension,
    )


def _suspension(record: CronRecord | None, now: datetime) -> Suspension | None:
    """A person's, if it is not over."""
    found = None if record is None else record.suspension
    return found if found is not None and found.holds(now) else None


def _in_words(found: Suspension | None) -> str:
    if found is None:
        return ""
    since = found.since.astimezone(UTC).isoformat(timespec="seconds")
    end = "until `tidework cron resume` ends it"
    if found.until is not None:
        until = found.until.astimezone(UTC).isoformat(timespec="seconds")
        end = f"until {until}, or until `tidework cron resume` ends it before"
    return f"suspended by {found.by} since {since}, {end}: {found.reason}"


def _ended(spec: CronSpec, record: CronRecord | None) -> str:
    if spec.suspend:
        return "suspended; it fires again once spec.suspend is false"
    enqueued = 0 if record is None else record.verdicts[Verdict.ENQUEUED]
    if spec.max_runs is not None and enqueued >= spec.max_runs:
        return f"finished: maxRuns {spec.max_runs} reached"
    return ""


def _next_fires(spec: CronSpec, record: CronRecord | None, now: datetime) -> tuple[datetime, ...]:
    count = NEXT_FIRES
    suspension = _suspension(record, now)
    if suspension is not None:
        if suspension.until is None:
            return ()
        now = max(now, suspension.until - timedelta(microseconds=1))
    if record is not None:
        now = max(now, from_unix(record.watermark))
        if spec.max_runs is not None:
            count = min(count, spec.max_runs - record.verdicts[Verdict.ENQUEUED])
    return spec.rules.upcoming(now, count)


def _obstacle(spec: CronSpec, record: CronRecord | None, found: Circumstances) -> str:
    rules = spec.rules
    if found.trouble:
        return f"Redis cannot be used: {found.trouble}"
    if rules.next(found.now) is None:
        if rules.end is None:
            return "finished: its schedule has no further fire time"
        when = rules.end.isoformat()
        if found.now > rules.end:
            return f"finished: endTime {when} has passed"
        return f"finished: its schedule has no further fire time until endTime {when}"
    if not found.led:
        return f"this scheduler stands by; the leader of queue {spec.queue} fires it"
    if rules.start is not None and found.now < rules.start:
        return f"starts at startTime {rules.start.isoformat()}"
    if record is None:
        return "about to be admitted"
    decided = from_unix(record.watermark)
    if decided > found.now + _AHEAD:
        return (
            f"fires up to {decided.isoformat()} were decided already, under a clock that was ahead"
        )
    return _held_up(spec, record)


def _held_up(spec: CronSpec, record: CronRecord) -> str:
    if spec.policy is ConcurrencyPolicy.FORBID and record.active:
        return (
            f"run {record.active[0]} has not ended; until then fires are skipped "
            "(concurrencyPolicy Forbid)"
        )
    if record.held:
        return f"run {record.held} waits for the end of the one that it replaces"
    return ""
