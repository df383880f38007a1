"""What people do with a CronTask beside its document: run it now, suspend it, resume it.

In a cluster the document is the truth, so none of this edits it. Each act is one step in Redis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tidework.broker.answers import SuspendAnswer
from tidework.broker.broker import Broker
from tidework.crontasks.errors import CronTaskNotFoundError, SuspendedByDocumentError
from tidework.crontasks.found import FoundCronTask
from tidework.errors import ConfigurationError
from tidework.model.fire import Suspension
from tidework.scheduler.spec import manual_job

LAST_YEAR = 9998
"""Of moments that people name: there is none behind 9999, whatever the zone."""


async def run_now(
    broker: Broker,
    found: FoundCronTask,
    nonce: str,
    now: datetime,
    *,
    params: Mapping[str, Any] | None = None,
    note: str = "",
) -> tuple[str, bool]:
    """Run it beside its schedule: id of the job, and whether it is a new one.

    nonce:  the same one makes no second run while the first is known
    params: in place of those of the document
    note:   who asked for it, and why
    Raises BrokerFullError, EnvelopeError.
    """
    spec = found.spec
    if params is not None:
        spec = replace(spec, params=params)
    job = manual_job(spec, nonce, now)
    is_new = await broker.run_now(found.queue, None, found.uid, nonce, job, note=note)
    return job.id, is_new


async def suspend(
    broker: Broker,
    found: FoundCronTask,
    now: datetime,
    *,
    by: str,
    reason: str,
    until: datetime | None = None,
) -> SuspendAnswer:
    """Have it rest, until somebody resumes it or ``until``.

    Raises ConfigurationError for a reason that says nothing or an end that has passed, and
    CronTaskNotFoundError if it has gone meanwhile.
    """
    if not reason.strip():
        raise ConfigurationError("a reason is needed: others see it where the CronTask rests")
    if until is not None and until.year > LAST_YEAR:
        raise ConfigurationError(
            f"until {until.isoformat()} lies beyond the year {LAST_YEAR}: leave it out"
        )
    if until is not None and until <= now:
        raise ConfigurationError(
            f"until {until.isoformat(timespec='seconds')} has passed: name a later moment, or none"
        )
    answer = await broker.suspend_cron(found.queue, found.uid, by=by, reason=reason, until=until)
    if answer is None:
        raise CronTaskNotFoundError(found.name, found.queue.namespace)
    return answer


async def resume(broker: Broker, found: FoundCronTask) -> Suspension | None:
    """End a person's suspension; None if none holds.

    Raises SuspendedByDocumentError if its document suspends it: then it rests all the same.
    """
    ended = await broker.resume_cron(found.queue, found.uid)
    if found.crontask.spec.suspend:
        raise SuspendedByDocumentError(found.name, found.queue.namespace, ended=ended is not None)
    return ended
