"""Commands about jobs: enqueue, look, cancel."""

from __future__ import annotations

import json
import time
from datetime import datetime
from math import isfinite
from typing import Any

import click

from tidework.broker.answers import CancelAnswer
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.cli.enqueueing import task_of, warning_of
from tidework.cli.options import (
    QueueCommand,
    client_of,
    namespace_option,
    output_option,
    redis_option,
)
from tidework.cli.tables import in_short
from tidework.cli.why import why_job
from tidework.errors import BrokerError, ConfigurationError, EnvelopeError, JobNotFoundError
from tidework.model.backlog import Delivery, DeliveryEnd, JobRecord
from tidework.model.bounds import delay_given
from tidework.model.documents.strict_json import decode_json
from tidework.model.identity import new_job_id
from tidework.model.job import DEFAULT_PRIORITY, Job, JobState, decode_job
from tidework.model.unique import OnConflict, Unique
from tidework.settings import Settings

_MOST_LOOKED_INTO = 200
"""Queues in which a job is looked for that is not in the one that was named."""

queue_option = click.option(
    "-q", "--queue", default="default", show_default=True, help="Queue of the job."
)
_GIVEN_AS = {
    "task": "TASK",
    "params": "PARAMS",
    "delay": "--delay",
    "id": "--id",
    "unique": "--unique",
}
"""Fields of an envelope, as the command line calls them."""


def _delay(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds")
    if value is not None:
        try:
            delay_given("delay", value)
        except ConfigurationError as error:
            raise click.BadParameter(str(error), param_hint="--delay") from error
    return value


@click.command()
@click.argument("task")
@click.argument("params", default="{}")
@click.option(
    "-q", "--queue", help="Queue of the job.  [default: that of --app's task, or default]"
)
@click.option(
    "--app",
    help="module, module:app or a commands file with the task: names and parameters are checked, "
    "and the job gets the queue and the bounds that the task is declared with.",
)
@click.option("--delay", type=float, callback=_delay, help="Seconds until it may run.")
@click.option(
    "--priority",
    type=click.IntRange(0, 9),
    help=f"0 is first.  [default: that of --app's task, or {DEFAULT_PRIORITY}]",
)
@click.option("--id", "job_id", help="Own id: the same id enqueues once.")
@click.option("--unique", help="Key that at most one unfinished job of the queue holds.")
@click.option(
    "--on-conflict",
    type=click.Choice([rule.value for rule in OnConflict]),
    default=OnConflict.SKIP.value,
    show_default=True,
    help="What to do if another job holds the key.",
)
@redis_option
@namespace_option
def enqueue(
    *,
    task: str,
    params: str,
    queue: str | None,
    redis_url: str | None,
    namespace: str | None,
    **options: Any,
) -> None:
    """Enqueue TASK with PARAMS, a JSON object of named parameters; print the job's id.

    Without --app the parameters are checked by the worker, and a task that no worker of the queue
    has announced is warned of on standard error.
    """
    now = time.time()
    priority = options["priority"]
    delay, unique, on_conflict = options["delay"], options["unique"], options["on_conflict"]
    try:
        given = decode_json(params.encode())
    except (EnvelopeError, UnicodeEncodeError) as error:
        reason = f'{error}; write an object in quotes, as in \'{{"to": "bob"}}\''
        raise click.BadParameter(reason, param_hint="PARAMS") from error
    try:
        job = Job(
            id=options["job_id"] or new_job_id(),
            task=task,
            params=given,
            priority=DEFAULT_PRIORITY if priority is None else priority,
            created_at=round(now, 3),
            unique=Unique(unique, on_conflict=OnConflict(on_conflict)) if unique else None,
            delay=delay,
        )
        decode_job(job.encode(), new_id=job.id, now=now)
    except EnvelopeError as error:
        given_as = _GIVEN_AS.get(error.field.partition(".")[0], error.field)
        raise click.BadParameter(error.reason, param_hint=given_as or "PARAMS") from error
    if options["app"]:
        spec = task_of(options["app"], task, given).spec
        queue = queue or spec.queue
        job = job._replace(
            priority=spec.priority if priority is None else priority,
            max_attempts=spec.retry.max_attempts,
            timeout=None if spec.timeout is None else spec.timeout.total_seconds(),
        )
    queue = queue or "default"
    client = client_of(redis_url, namespace)
    (found,) = client.enqueue_sync(queue, [job])
    click.echo(found.id)
    if found.inserted and (warning := warning_of(client.settings, queue, task)):
        click.echo(f"warning: {warning}", err=True)
    if found.id != job.id:
        click.echo(f"this job holds the key {unique!r}: nothing was enqueued", err=True)
    elif not found.inserted:
        click.echo("this id is known already: nothing was enqueued", err=True)


@click.group()
def job() -> None:
    """Look at a job, ask why it does not run, or cancel it."""


job.add_command(why_job)


@job.command("get", cls=QueueCommand)
@click.argument("job_id")
@queue_option
@redis_option
@namespace_option
@output_option
def get_job(
    job_id: str, queue: str, redis_url: str | None, namespace: str | None, output: str
) -> None:
    """Everything known of the job JOB_ID."""
    try:
        record = client_of(redis_url, namespace).get_sync(job_id, queue=queue)
    except JobNotFoundError as error:
        _refuse_if_elsewhere(error, redis_url, namespace)
        raise
    found = document_of(record)
    if output == "json":
        click.echo(json.dumps(found, indent=2, default=str))
        return
    found.pop("history", None)
    if record.progress is not None:
        found["progress"] = f"{in_short(found['progress'])}, {_moment(record.progress.at)}"
    width = max(len(name) for name in found)
    for name, value in found.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        click.echo(f"{name:<{width}}  {text}")
    for number, delivery in enumerate(record.history):
        click.echo(f"{'' if number else 'history':<{width}}  {_told(delivery)}")


@job.command("cancel", cls=QueueCommand)
@click.argument("job_id")
@queue_option
@redis_option
@namespace_option
def cancel_job(job_id: str, queue: str, redis_url: str | None, namespace: str | None) -> None:
    """Cancel the job JOB_ID: at once if it waits, by its worker if it runs."""
    try:
        answer = client_of(redis_url, namespace).cancel_sync(job_id, queue=queue)
    except JobNotFoundError as error:
        _refuse_if_elsewhere(error, redis_url, namespace)
        raise
    click.echo(answer)
    if answer == CancelAnswer.FINISHED:
        click.echo("this job had ended before: nothing was cancelled", err=True)


def _refuse_if_elsewhere(
    missing: JobNotFoundError, redis_url: str | None, namespace: str | None
) -> None:
    """Raise ConfigurationError with the queue that has the job, if another one has it."""
    settings = Settings.load(redis_url=redis_url, namespace=namespace)
    try:
        broker = connect_blocking(settings.redis_url)
        known = [each for each in drive(broker.queues()) if each.namespace == settings.namespace]
        for queue in known[:_MOST_LOOKED_INTO]:
            if drive(broker.get_job(queue, missing.job_id)) is not None:
                raise ConfigurationError(
                    f"job {missing.job_id!r} is not in queue {missing.queue!r}, but in queue "
                    f"{queue.name!r}: give --queue {queue.name}"
                )
    except BrokerError:
        return  # without the right to look there the first answer has to do


def _envelope(record: JobRecord) -> dict[str, Any]:
    try:
        found = json.loads(record.body)
    except (ValueError, RecursionError):
        return {}  # a dead letter may be anything
    return found if isinstance(found, dict) else {}


def _moment(found: datetime | None) -> str | None:
    return None if found is None else found.isoformat(timespec="milliseconds")


def document_of(record: JobRecord) -> dict[str, Any]:
    """A record for people and for JSON; what is not there is left out."""
    envelope = _envelope(record)
    found: dict[str, Any] = {"id": record.id, "state": record.state.value}
    if envelope:
        found |= {"task": envelope.get("task"), "params": envelope.get("params", {})}
    else:
        found["document"] = record.body.decode(errors="backslashreplace")
    found |= {
        "priority": record.priority,
        "attempt": record.attempt,
        "deliveries": record.deliveries,
        "losses": record.losses,
        "releases": record.releases,
        "available_at": _moment(record.available_at),
        "waits": _waits(record),
        "changed_at": _moment(record.changed_at),
        "started_at": _moment(record.started_at),
        "worker": record.worker or None,
        "cron": record.cron or None,
        "unique": record.unique or None,
        "cancel_requested": record.cancel_requested or None,
        "progress": _progress(record),
        "checkpoints": record.checkpoints or None,
        "result": record.result,
        "result_refusal": record.result_refusal or None,
    }
    if record.error is not None:
        error = record.error
        found["error"] = f"{error.type}: {error.message} (cause: {error.cause})"
        found["fingerprint"] = error.fingerprint
        found["trace"] = error.trace or None
    found["history"] = [_delivery(each) for each in record.history] or None
    return {name: value for name, value in found.items() if value is not None}


def _waits(record: JobRecord) -> str | None:
    """Why it runs again only at ``available_at``."""
    if record.state is not JobState.SCHEDULED or not record.history:
        return None
    end = record.history[-1].end
    if end in (DeliveryEnd.LOSS, DeliveryEnd.EXPIRED):
        times = "once" if record.losses == 1 else f"{record.losses} times"
        return f"lost {times} with its process: it pauses before it runs again, longer each time"
    if end is DeliveryEnd.RETRY:
        return f"attempt {record.attempt} failed: it pauses before the next one"
    if end is DeliveryEnd.RELEASE:
        return "released, uncounted: it runs again after a pause"
    return None


def _progress(record: JobRecord) -> dict[str, Any] | None:
    found = record.progress
    if found is None:
        return None
    told = {"done": found.done, "total": found.total, "note": found.note or None}
    told["at"] = _moment(found.at)
    return {name: value for name, value in told.items() if value is not None}


def _delivery(found: Delivery) -> dict[str, Any]:
    return {
        "attempt": found.attempt,
        "end": found.end.value,
        "claimed_at": _moment(found.claimed_at),
        "ended_at": _moment(found.ended_at),
        "worker": found.worker,
        "cause": found.cause or None,
    }


def _told(found: Delivery) -> str:
    """One line for people."""
    seconds = (found.ended_at - found.claimed_at).total_seconds() if found.ended_at else None
    took = "" if seconds is None else f" after {seconds:.3f} s"
    cause = f" ({found.cause})" if found.cause else ""
    moment = _moment(found.claimed_at)
    return f"{moment}  attempt {found.attempt}  {found.end.value}{took}  {found.worker}{cause}"
