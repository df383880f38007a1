"""Commands about jobs: enqueue, look, cancel, list dead letters."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

import click

from tidework.cli.options import client_of, namespace_option, output_option, redis_option
from tidework.errors import EnvelopeError
from tidework.model.backlog import JobRecord
from tidework.model.identity import new_job_id
from tidework.model.job import DEFAULT_PRIORITY, Job, JobState, decode_job

queue_option = click.option(
    "-q", "--queue", default="default", show_default=True, help="Queue of the job."
)


@click.command()
@click.argument("task")
@click.argument("params", default="{}")
@queue_option
@click.option("--delay", type=float, help="Seconds until it may run.")
@click.option("--priority", type=click.IntRange(0, 9), default=DEFAULT_PRIORITY, show_default=True)
@click.option("--id", "job_id", help="Own id: the same id enqueues once.")
@redis_option
@namespace_option
def enqueue(
    task: str,
    params: str,
    queue: str,
    delay: float | None,
    priority: int,
    job_id: str | None,
    redis_url: str | None,
    namespace: str | None,
) -> None:
    """Enqueue TASK with PARAMS, a JSON object of named parameters; print the job's id.

    The parameters are checked by the worker: the command line does not know the application.
    """
    now = time.time()
    try:
        found = json.loads(params)
    except ValueError as error:
        raise click.BadParameter(f"not valid JSON: {error}", param_hint="PARAMS") from error
    job = Job(
        id=job_id or new_job_id(),
        task=task,
        params=found,
        priority=priority,
        created_at=round(now, 3),
        available_at=None if delay is None else now + delay,
    )
    try:
        decode_job(job.encode(), new_id=job.id, now=now)
    except EnvelopeError as error:
        raise click.BadParameter(str(error), param_hint=error.field or "PARAMS") from error
    client = client_of(redis_url, namespace)
    (inserted,) = client.enqueue_sync(queue, [job])
    click.echo(job.id)
    if not inserted:
        click.echo("this id is known already: nothing was enqueued", err=True)


@click.group()
def job() -> None:
    """Look at a job, or cancel it."""


@job.command("get")
@click.argument("job_id")
@queue_option
@redis_option
@namespace_option
@output_option
def get_job(
    job_id: str, queue: str, redis_url: str | None, namespace: str | None, output: str
) -> None:
    """Everything known of the job JOB_ID."""
    record = client_of(redis_url, namespace).get_sync(job_id, queue=queue)
    found = _document(record)
    if output == "json":
        click.echo(json.dumps(found, indent=2, default=str))
        return
    width = max(len(name) for name in found)
    for name, value in found.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        click.echo(f"{name:<{width}}  {text}")


@job.command("cancel")
@click.argument("job_id")
@queue_option
@redis_option
@namespace_option
def cancel_job(job_id: str, queue: str, redis_url: str | None, namespace: str | None) -> None:
    """Cancel the job JOB_ID: at once if it waits, by its worker if it runs."""
    click.echo(client_of(redis_url, namespace).cancel_sync(job_id, queue=queue))


@click.group()
def dead() -> None:
    """Dead letters: jobs that are out of attempts, and documents that are no jobs."""


@dead.command("list")
@queue_option
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@redis_option
@namespace_option
@output_option
def list_dead(
    queue: str, limit: int, redis_url: str | None, namespace: str | None, output: str
) -> None:
    """The latest dead letters, newest first."""
    client = client_of(redis_url, namespace)
    ids = client.jobs_sync(queue, JobState.DEAD, limit=limit).ids
    records = [client.get_sync(found, queue=queue) for found in ids]
    if output == "json":
        click.echo(json.dumps([_document(record) for record in records], indent=2, default=str))
        return
    for record in records:
        error = record.error
        reason = "" if error is None else f"{error.type}: {error.message.splitlines()[0][:120]}"
        click.echo(f"{record.id}  {_envelope(record).get('task', '(no job)')}  {reason}")


def _envelope(record: JobRecord) -> dict[str, Any]:
    try:
        found = json.loads(record.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _moment(found: datetime | None) -> str | None:
    return None if found is None else found.isoformat(timespec="milliseconds")


def _document(record: JobRecord) -> dict[str, Any]:
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
        "changed_at": _moment(record.changed_at),
        "started_at": _moment(record.started_at),
        "worker": record.worker or None,
        "cron": record.cron or None,
        "cancel_requested": record.cancel_requested or None,
        "result": record.result,
    }
    if record.error is not None:
        error = record.error
        found["error"] = f"{error.type}: {error.message} (cause: {error.cause})"
        found["trace"] = error.trace or None
    return {name: value for name, value in found.items() if value is not None}
