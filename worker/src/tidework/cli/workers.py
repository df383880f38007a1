"""Commands about running workers: which there are, what they do, claim nothing more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.cli.options import namespace_option, output_option, redis_option
from tidework.cli.tables import columns, in_short
from tidework.model.identity import QueueName
from tidework.roster import Roster, WorkerEntry, in_words
from tidework.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
ANSWER_WITHIN_S = 30.0
"""An idle worker is woken; one that runs a job looks every third of its lease, 10 s at most."""
_HEAD = ("NAME", "STATE", "QUEUES", "SLOTS", "BUSY", "DONE", "FAILED", "SEEN", "VERSION", "HOST")


def _where_options(command: F) -> F:
    """-q --redis-url --namespace"""
    command = click.option(
        "-q",
        "--queue",
        "queues",
        multiple=True,
        help="Of this queue; may be given again.  [default: all of the namespace]",
    )(command)
    return namespace_option(redis_option(command))


def _roster(queues: Sequence[str], redis_url: str | None, namespace: str | None) -> Roster:
    settings = Settings.load(redis_url=redis_url, namespace=namespace)
    broker = connect_blocking(settings.redis_url)
    if queues:
        return Roster(broker, [QueueName(settings.namespace, name) for name in queues])
    known = drive(broker.queues())
    return Roster(broker, [queue for queue in known if queue.namespace == settings.namespace])


@click.command("list")
@_where_options
@output_option
def list_workers(
    queues: tuple[str, ...], redis_url: str | None, namespace: str | None, output: str
) -> None:
    """Running workers and what they do."""
    entries = drive(_roster(queues, redis_url, namespace).entries())
    if output == "json":
        click.echo(json.dumps([_document(entry) for entry in entries], indent=2))
        return
    if not entries:
        chosen = Settings.load(redis_url=redis_url, namespace=namespace).namespace
        click.echo(
            f"no worker has been seen for some minutes in namespace {chosen}: start one by "
            "`tidework worker --app MODULE` or `tidework dev FILES`; --namespace names another "
            "namespace",
            err=True,
        )
        return
    for line in columns([_HEAD, *map(_row, entries)]):
        click.echo(line)
    for entry in entries:
        if entry.remark:
            click.echo(f"{entry.incarnation}: {entry.state}: {entry.remark}")


@click.command("get")
@click.argument("name")
@_where_options
@output_option
def get_worker(
    name: str, queues: tuple[str, ...], redis_url: str | None, namespace: str | None, output: str
) -> None:
    """One worker, and what its slots run.

    NAME is one that `worker list` prints, or the part before its last dot.
    """
    entry = drive(_roster(queues, redis_url, namespace).find(name))
    found = _document(entry)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    jobs = found.pop("jobs", [])
    width = max(map(len, found))
    for field, value in found.items():
        text = value if isinstance(value, str) else json.dumps(value)
        click.echo(f"{field:<{width}}  {text}")
    for line in _slot_lines(entry, jobs):
        click.echo(line)


@click.command("drain")
@click.argument("name")
@click.option("--undo", is_flag=True, help="It may claim again.")
@_where_options
def drain_worker(
    *,
    name: str,
    undo: bool,
    queues: tuple[str, ...],
    redis_url: str | None,
    namespace: str | None,
) -> None:
    """Stop a worker from claiming jobs.

    The jobs that it holds run to their end. This lasts until --undo, or until the worker ends. The
    autoscaler removes it before others when there are too many. To end it, send it SIGTERM.
    """
    roster = _roster(queues, redis_url, namespace)
    entry = drive(roster.find(name))
    where = ", ".join(map(str, entry.queues))
    if undo:
        ended = drive(roster.uncordon(entry))
        text = "may claim again" if ended.undone else "was not cordoned by a person"
        if ended.still:
            text += "; the autoscaler keeps it from claiming, for now"
        click.echo(f"{entry.incarnation} {text} ({where})")
        return
    answer = drive(roster.cordon(entry))
    was = "was cordoned already" if answer.before else "claims nothing more"
    click.echo(f"{entry.incarnation} {was} ({where}); jobs that it holds: {answer.leases}")


@click.command("stacks")
@click.argument("name")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=ANSWER_WITHIN_S,
    show_default=True,
    help="Seconds to wait for the answer.",
)
@_where_options
@output_option
def show_stacks(
    *,
    name: str,
    timeout: float,
    queues: tuple[str, ...],
    redis_url: str | None,
    namespace: str | None,
    output: str,
) -> None:
    """What the processes of a worker do.

    The stacks of all threads of the worker NAME, right now. They are written to its log as well.
    A process that is stuck is marked.
    """
    roster = _roster(queues, redis_url, namespace)
    answer = drive(roster.stacks(drive(roster.find(name)), timeout, _sleep))
    if output == "json":
        click.echo(json.dumps(answer.document, indent=2))
        return
    for line in _stack_lines(answer.document):
        click.echo(line)


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251 - driven without an event loop


def _document(entry: WorkerEntry) -> dict[str, Any]:
    """A worker for people and for JSON; what it does not say is left out."""
    said = dict(entry.document)
    jobs = [job for job in _list(said.pop("jobs", [])) if isinstance(job, Mapping)]
    found: dict[str, Any] = {
        "incarnation": entry.incarnation,
        "name": entry.name,
        "state": entry.state.value,
        "remark": entry.remark or None,
        "seen_at": entry.presence.seen_at.isoformat(timespec="milliseconds"),
        "silent_seconds": round(entry.presence.silent_for.total_seconds(), 3),
        "cordoned_by": [who.name.lower() for who in entry.cordon if who.name],
    }
    said["queues"] = [str(queue) for queue in entry.queues]
    for field in ("started_at", "last_job_at"):
        said[field] = _moment(said.get(field))
    found |= {field: value for field, value in said.items() if field not in found}
    found["jobs"] = [{**job, "since": _moment(job.get("since"))} for job in jobs]
    return {field: value for field, value in found.items() if value is not None}


def _moment(seconds: Any) -> str | None:
    if not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _number(found: Any) -> int:
    return found if isinstance(found, int) else 0


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _row(entry: WorkerEntry) -> tuple[str, ...]:
    said = entry.document
    host = said.get("pod") or said.get("host")
    cells = [said.get(field) for field in ("slots", "busy", "processed", "failed")]
    return (
        entry.incarnation,
        entry.state.value,
        ",".join(queue.name for queue in entry.queues),
        *("-" if cell is None else str(cell) for cell in cells),
        f"{in_words(entry.presence.silent_for)} ago",
        str(said.get("version") or "-"),
        str(host or "-"),
    )


def _slot_lines(entry: WorkerEntry, jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each running job, by slot; slots without one in a line of their own."""
    said = entry.document
    head = ("SLOT", "JOB", "TASK", "QUEUE", "ATTEMPT", "RUNS FOR", "CHILD", "PROGRESS")
    ordered = sorted(jobs, key=lambda job: (_number(job.get("slot")), job.get("since") or ""))
    rows = [_job_row(job, entry.presence.seen_at) for job in ordered]
    if rows:
        yield ""
        yield from columns([head, *rows])
    if left_out := _number(said.get("jobs_left_out")):
        yield f"and {left_out} more jobs, which began later"
    yield f"free slots: {max(0, _number(said.get('slots')) - _number(said.get('busy')))}"


def _job_row(job: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    since, runs = job.get("since"), "-"
    if since is not None:
        runs = in_words(max(timedelta(0), now - datetime.fromisoformat(since)))
    fields = [job.get(field) for field in ("slot", "id", "task", "queue", "attempt")]
    texts = ["-" if value is None else str(value) for value in [*fields, job.get("child")]]
    return (*texts[:5], runs, texts[5], in_short(job.get("progress")))


def _stack_lines(document: Mapping[str, Any]) -> Iterator[str]:
    for found in document.get("processes", ()):
        jobs = ", ".join(f"{job.get('task')} {job.get('id')}" for job in found.get("jobs") or ())
        slot = "" if found.get("slot") is None else f", slot {found['slot']}"
        yield f"== {found.get('process')} (pid {found.get('pid')}{slot}) {jobs}".rstrip()
        if found.get("stuck"):
            yield f"!! {found['stuck']}"
        yield str(found.get("stacks", "")).rstrip() + "\n"
    if document.get("left_out"):
        yield f"{document['left_out']} more children were not asked"
