"""Commands about queues: which there are, and what is in them."""

from __future__ import annotations

import json
from typing import Any

import click

from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import RedisBroker, connect_blocking
from tidework.cli.options import client_of, namespace_option, output_option, redis_option
from tidework.cli.tables import columns, span_text
from tidework.meant import did_you_mean
from tidework.model.backlog import QueueStats
from tidework.model.identity import QueueName
from tidework.model.statistics import ALL_TASKS, Step, TaskStatistics, Totals, totals_document
from tidework.settings import Settings

_TITLES = (
    *("TASK", "LAST", "ENQUEUED", "SUCCEEDED", "FAILED", "LOST", "DEAD", "SUCCESS"),
    *("RUN MEAN", "P50", "P95", "P99", "WAIT MEAN", "P50", "P95", "P99"),
)


@click.group()
def queue() -> None:
    """Look at queues, pause and resume them."""


@queue.command("list")
@redis_option
@output_option
def list_queues(redis_url: str | None, output: str) -> None:
    """Every queue that this Redis knows, as namespace/name."""
    broker = connect_blocking(Settings.load(redis_url=redis_url).redis_url)
    names = [str(name) for name in drive(broker.queues())]
    if output == "json":
        click.echo(json.dumps(names))
        return
    for name in names:
        click.echo(name)
    if not names:
        click.echo(
            "this Redis knows no queue yet: start `tidework worker` or `tidework dev`, or enqueue "
            "a job by `tidework enqueue`",
            err=True,
        )


@queue.command("stats")
@click.argument("name")
@redis_option
@namespace_option
@output_option
def stats(name: str, redis_url: str | None, namespace: str | None, output: str) -> None:
    """Jobs by state, the age of the oldest, and counters of the queue NAME; and of each task in
    the last hour and day its success rate, how long it ran and how long it waited."""
    counted = client_of(redis_url, namespace).stats_sync(name)
    _tell_if_unused(name, counted)
    found = _document(counted)
    broker, queue_name = _broker_of(name, redis_url, namespace)
    tasks = drive(broker.statistics(queue_name))
    if output == "json":
        found["tasks"] = {each.task: _periods(each) for each in tasks}
        click.echo(json.dumps(found, indent=2))
        return
    for key, value in found.items():
        click.echo(f"{key:<24} {value}")
    if tasks:
        click.echo()
        for line in columns([_TITLES, *(row for each in tasks for row in _rows(each))]):
            click.echo(line)


@queue.command("trend")
@click.argument("name")
@click.option(
    "--by",
    type=click.Choice([step.name.lower() for step in Step]),
    default="day",
    show_default=True,
    help="How long each line is: of each the last 180 minutes, 72 hours, 400 days.",
)
@click.option("--task", default=ALL_TASKS, show_default=True, help="One task alone.")
@redis_option
@namespace_option
@output_option
def trend(
    name: str, by: str, task: str, redis_url: str | None, namespace: str | None, output: str
) -> None:
    """What happened to the jobs of the queue NAME by the day, hour or minute, in UTC; a time in
    which nothing did has no line."""
    broker, queue_name = _broker_of(name, redis_url, namespace)
    points = drive(broker.series(queue_name, Step[by.upper()], task=task)).points
    if output == "json":
        documents = [
            {"at": point.at.isoformat(), **totals_document(point.totals)} for point in points
        ]
        click.echo(json.dumps(documents, indent=2))
        return
    if points:
        rows = [(f"{point.at:%Y-%m-%d %H:%M}", *_cells(point.totals)) for point in points]
        for line in columns([("SINCE", *_TITLES[2:]), *rows]):
            click.echo(line)
        return
    tasks = [each.task for each in drive(broker.statistics(queue_name))]
    click.echo(
        f"nothing was counted of {task} in queue {name}{did_you_mean(task, tasks)}", err=True
    )


@queue.command("pause")
@click.argument("name")
@click.option("--reason", default="", help="Shown as the reason why nothing runs.")
@redis_option
@namespace_option
def pause(name: str, reason: str, redis_url: str | None, namespace: str | None) -> None:
    """Stop claims from the queue NAME; running jobs go on, and jobs can be enqueued."""
    client = client_of(redis_url, namespace)
    paused = client.pause_sync(name, reason)
    click.echo("paused" if paused else "it was paused already")
    _tell_if_unused(name, client.stats_sync(name))


@queue.command("resume")
@click.argument("name")
@redis_option
@namespace_option
def resume(name: str, redis_url: str | None, namespace: str | None) -> None:
    """End the pause of the queue NAME."""
    resumed = client_of(redis_url, namespace).resume_sync(name)
    click.echo("resumed" if resumed else "it was not paused")


def _broker_of(
    name: str, redis_url: str | None, namespace: str | None
) -> tuple[RedisBroker, QueueName]:
    settings = Settings.load(redis_url=redis_url, namespace=namespace)
    return connect_blocking(settings.redis_url), QueueName(settings.namespace, name)


def _tell_if_unused(name: str, found: QueueStats) -> None:
    """Whoever mistypes a name would take its quiet for good news."""
    if not (found.counters or found.inbox or any(found.states.values())):
        text = f"queue {name} never had a job in this namespace: `tidework queue list` names all"
        click.echo(text, err=True)


def _document(found: QueueStats) -> dict[str, Any]:
    document: dict[str, Any] = {state.value: count for state, count in found.states.items()}
    document |= {"unvalidated": found.inbox, "oldest_age_seconds": found.oldest_age}
    if found.pause is not None:
        document["paused_since"] = found.pause.since.isoformat(timespec="seconds")
        document["paused_because"] = found.pause.reason
    return document | {f"total_{name}": value for name, value in sorted(found.counters.items())}


def _periods(found: TaskStatistics) -> dict[str, Any]:
    return {"last_hour": totals_document(found.hour), "last_day": totals_document(found.day)}


def _rows(found: TaskStatistics) -> list[tuple[str, ...]]:
    """The last hour, and the last day."""
    return [
        (found.task, "hour", *_cells(found.hour)),
        ("", "day", *_cells(found.day)),
    ]


def _cells(found: Totals) -> list[str]:
    counts = (found.enqueued, found.succeeded, found.failed, found.lost, found.dead)
    rate = found.success_rate
    # Not rounded up to a whole: 100 % says that nothing failed.
    share = "-" if rate is None else f"{int(rate * 1000) / 10:g} %"
    times = [span_text(value) for of in (found.run, found.wait) for value in of.in_short.values()]
    return [*map(str, counts), share, *times]
