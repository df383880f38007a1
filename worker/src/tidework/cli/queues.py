"""Commands about queues: which there are, and what is in them."""

from __future__ import annotations

import json
from typing import Any

import click

from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.cli.options import client_of, namespace_option, output_option, redis_option
from tidework.model.backlog import QueueStats
from tidework.settings import Settings


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
    """Jobs by state, the age of the oldest, and counters of the queue NAME."""
    counted = client_of(redis_url, namespace).stats_sync(name)
    _tell_if_unused(name, counted)
    found = _document(counted)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    for key, value in found.items():
        click.echo(f"{key:<24} {value}")


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
