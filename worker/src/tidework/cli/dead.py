"""Commands about dead letters: look for them, replay them, purge them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

import click

from tidework.cli.jobs import document_of, queue_option
from tidework.cli.options import (
    QueueCommand,
    client_of,
    namespace_option,
    output_option,
    past_moment,
    redis_option,
)
from tidework.model.backlog import JobFilter
from tidework.model.job import JobState

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=StrEnum)


def _filter_options(command: F) -> F:
    """--task --error --since --until"""
    for option in (
        click.option(
            "--until", callback=past_moment, help="Dead by then: a time, or so long ago: 15m 2h 7d."
        ),
        click.option("--since", callback=past_moment, help="Dead since then; times as in --until."),
        click.option("--error", default="", help="Of this fingerprint, see `dead errors`."),
        click.option("--task", default="", help="Of this task."),
    ):
        command = option(command)
    return command


@click.group()
def dead() -> None:
    """Dead letters: jobs that are out of attempts, and documents that are not valid jobs."""


@dead.command("list", cls=QueueCommand)
@queue_option
@_filter_options
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--cursor", help="Go on where a list ended.")
@redis_option
@namespace_option
@output_option
def list_dead(
    queue: str,
    limit: int,
    cursor: str | None,
    redis_url: str | None,
    namespace: str | None,
    output: str,
    **within: Any,
) -> None:
    """The latest dead letters, newest first."""
    client = client_of(redis_url, namespace)
    page = client.jobs_sync(queue, JobState.DEAD, JobFilter(**within), cursor=cursor, limit=limit)
    records = [client.get_sync(found, queue=queue) for found in page.ids]
    if output == "json":
        click.echo(json.dumps([document_of(record) for record in records], indent=2, default=str))
    else:
        for record in records:
            error = record.error
            reason = "" if error is None else f"{error.type}: {_first_line(error.message)}"
            click.echo(f"{record.id}  {record.task or '(no job)'}  {reason}")
        if not records:
            click.echo(_nothing(queue, JobFilter(**within)), err=True)
    if page.cursor:
        click.echo(f"there are more: --cursor {page.cursor}", err=True)


@dead.command("errors", cls=QueueCommand)
@queue_option
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@redis_option
@namespace_option
@output_option
def list_errors(
    queue: str, limit: int, redis_url: str | None, namespace: str | None, output: str
) -> None:
    """Dead letters grouped by their error, the most frequent first."""
    groups = client_of(redis_url, namespace).errors_sync(queue, limit=limit)
    if output == "json":
        found = [
            {
                "fingerprint": group.fingerprint,
                "count": group.count,
                "first_at": group.first_at.isoformat(),
                "last_at": group.last_at.isoformat(),
                "example": group.example,
                "message": None if group.error is None else group.error.message,
            }
            for group in groups
        ]
        click.echo(json.dumps(found, indent=2))
        return
    if not groups:
        click.echo(_nothing(queue, JobFilter()), err=True)
    for group in groups:
        message = "" if group.error is None else _first_line(group.error.message)
        click.echo(f"{group.count:>6}  {group.fingerprint}  {group.example}  {message}")


@dead.command("replay")
@click.argument("job_ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that fit the filter.")
@queue_option
@_filter_options
@redis_option
@namespace_option
def replay(
    *,
    job_ids: tuple[str, ...],
    every: bool,
    queue: str,
    redis_url: str | None,
    namespace: str | None,
    **within: Any,
) -> None:
    """Make dead letters ready again, with all their attempts: JOB_IDS, or all that fit a filter."""
    chosen = _chosen(job_ids, every=every, **within)
    client = client_of(redis_url, namespace)
    if chosen is None:
        answers = _by_id(job_ids, client.replay_sync(job_ids, queue=queue), "replayed")
    else:
        answers = client.replay_all_sync(queue, chosen)
    _tell(answers, "replayed")


@dead.command("purge")
@click.argument("job_ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that fit the filter.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@queue_option
@_filter_options
@redis_option
@namespace_option
def purge(
    *,
    job_ids: tuple[str, ...],
    every: bool,
    yes: bool,
    queue: str,
    redis_url: str | None,
    namespace: str | None,
    **within: Any,
) -> None:
    """Delete dead letters for good: JOB_IDS, or all that fit a filter."""
    chosen = _chosen(job_ids, every=every, **within)
    client = client_of(redis_url, namespace)
    if chosen is None:
        answers = _by_id(job_ids, client.purge_sync(job_ids, queue=queue), "purged")
    else:
        if not yes:
            click.confirm(f"Delete these dead letters of queue {queue} for good?", abort=True)
        answers = client.purge_all_sync(queue, JobState.DEAD, chosen)
    _tell(answers, "purged")


def _chosen(job_ids: tuple[str, ...], *, every: bool, **within: Any) -> JobFilter | None:
    """The filter, None if ids were given. Raises click.UsageError for both or neither."""
    wanted = JobFilter(**within)
    filtered = every or wanted != JobFilter()
    if bool(job_ids) == filtered:
        raise click.UsageError(
            "give job ids, or a filter (--task, --error, --since, --until), or --all"
        )
    return None if job_ids else wanted


def _by_id(job_ids: Iterable[str], answers: Iterable[A], done: str) -> Counter[A]:
    """Name each that was left alone."""
    counted: Counter[A] = Counter()
    for job_id, answer in zip(job_ids, answers, strict=True):
        counted[answer] += 1
        if answer != done:
            click.echo(f"{job_id}: {answer}", err=True)
    return counted


def _tell(answers: Counter[A], done: str) -> None:
    """Exit code 1 if any was left alone."""
    number = sum(count for answer, count in answers.items() if answer == done)
    others = {answer: count for answer, count in answers.items() if answer != done}
    click.echo(", ".join([f"{number} {done}", *(f"{n} {answer}" for answer, n in others.items())]))
    if others:
        raise click.exceptions.Exit(1)


def _nothing(queue: str, within: JobFilter) -> str:
    if within != JobFilter():
        return f"no dead letter of queue {queue} fits: `tidework dead list -q {queue}` shows all"
    return f"queue {queue} has no dead letters; `tidework queue list` names all queues"


def _first_line(message: str) -> str:
    return message.splitlines()[0][:120] if message else ""
