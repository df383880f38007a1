"""Runs of past instants of a CronTask: which these are, and step by step through them.

Each instant runs at most once, however often it is asked for: the store knows them by their fire.
So a backfill that was aborted goes on where it stood when it is asked for once more. Whoever asks
goes through it in steps; nothing goes on by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidework.broker.broker import Broker
from tidework.crontasks.acts import LAST_YEAR
from tidework.crontasks.errors import CronTaskNotFoundError
from tidework.crontasks.found import FoundCronTask
from tidework.errors import ConfigurationError
from tidework.model.fire import BackfillAnswer, ConcurrencyPolicy, CronRecord
from tidework.scheduler.due import from_unix, to_unix
from tidework.scheduler.spec import CronSpec, fire_job

MOST_FIRES = 1_000
"""Of one backfill."""

_IN_ONE_STEP = 50
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What is asked for.

    fires:         the instants, oldest first
    one_at_a_time: its concurrencyPolicy is not Allow: each run waits for the end of the one before
    until:         the last instant that has a verdict, where the range goes on behind it; the
                   scheduler decides what comes then. None if all of the range lies before
    """

    fires: tuple[datetime, ...]
    one_at_a_time: bool
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """How far one call came.

    enqueued, known: numbers of instants; known: they ran, or were asked for before
    left:            instants that are still to come
    waits_for:       id of the run whose end they wait for, '' if for none
    """

    enqueued: int
    known: int
    left: tuple[datetime, ...]
    waits_for: str = ""


def plan_backfill(
    spec: CronSpec, record: CronRecord | None, since: datetime, until: datetime
) -> BackfillPlan:
    """The instants of the schedule from ``since`` to ``until``, both included.

    Raises ConfigurationError for a range without instants, or with more than MOST_FIRES.
    """
    for moment in (since, until):
        if not 1970 <= moment.year <= LAST_YEAR:
            raise ConfigurationError(
                f"{moment.isoformat()} lies outside of the years 1970 to {LAST_YEAR}"
            )
    since, until = since.astimezone(UTC), until.astimezone(UTC)
    if until < since:
        raise ConfigurationError(f"the range ends at {until.isoformat()}, before it begins")
    if record is None:
        raise ConfigurationError(
            f"CronTask {spec.name} has not been admitted yet: is its scheduler running?"
        )
    decided = from_unix(record.watermark)
    end = min(until, decided)
    fires = _instants(spec, since, end)
    if len(fires) > MOST_FIRES:
        raise ConfigurationError(
            f"there are more than {MOST_FIRES} instants between {since.isoformat()} and "
            f"{end.isoformat()}; the first {MOST_FIRES} end at {fires[MOST_FIRES - 1].isoformat()}:"
            " ask for a part at a time"
        )
    if not fires:
        raise ConfigurationError(
            f"the schedule of CronTask {spec.name} has no instant between {since.isoformat()} and "
            f"{end.isoformat()}" + ("" if end == until else ", up to which it is decided")
        )
    policy = spec.policy
    return BackfillPlan(
        fires, policy is not ConcurrencyPolicy.ALLOW, decided if until > decided else None
    )


def _instants(spec: CronSpec, since: datetime, until: datetime) -> tuple[datetime, ...]:
    """One more than MOST_FIRES at most."""
    found: list[datetime] = []
    at = spec.rules.next(since - _SECOND)
    while at is not None and at <= until and len(found) <= MOST_FIRES:
        if at >= since:
            found.append(at)
        at = spec.rules.next(at)
    return tuple(found)


async def go_on(
    broker: Broker, found: FoundCronTask, fires: Sequence[datetime], now: datetime, *, note: str
) -> BackfillStep:
    """Enqueue as many of the instants as may be enqueued now, in their order.

    Raises BrokerFullError (what was enqueued before stays) and CronTaskNotFoundError if it has
    gone meanwhile.
    """
    spec = found.spec
    enqueued = known = 0
    for start in range(0, len(fires), _IN_ONE_STEP):
        some = fires[start : start + _IN_ONE_STEP]
        jobs = {to_unix(at): fire_job(spec, at, now, late=True) for at in some}
        answers = await broker.backfill(found.queue, found.uid, jobs, policy=spec.policy, note=note)
        if answers is None:
            raise CronTaskNotFoundError(found.name, found.queue.namespace)
        enqueued += answers.count(BackfillAnswer.ENQUEUED)
        known += answers.count(BackfillAnswer.KNOWN)
        if BackfillAnswer.BUSY in answers:
            # An instant behind it may be known, which it is once more when its turn comes.
            first = answers.index(BackfillAnswer.BUSY)
            known -= answers[first:].count(BackfillAnswer.KNOWN)
            left = tuple(fires[start + first :])
            record = await broker.cron_record(found.queue, found.uid)
            active = () if record is None else record.active
            return BackfillStep(enqueued, known, left, active[0] if active else "")
    return BackfillStep(enqueued, known, ())
