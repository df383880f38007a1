"""Commands about CronTasks: those that schedulers mirror, and how each of them stands.

What is done with one is in cron_acts.py and cron_backfill.py. Schedules alone are in cron_shown.py,
and taking over a crontab is in cron_import.py.
"""

from __future__ import annotations

import json
from typing import Any

import click

from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.cli.cron_acts import resume, run, runs, suspend
from tidework.cli.cron_backfill import backfill
from tidework.cli.cron_import import import_crontab
from tidework.cli.cron_shown import explain, lint, next_fires
from tidework.cli.options import namespace_option, output_option, redis_option
from tidework.clock import SystemClock
from tidework.crontasks.found import find_crontasks, status_of
from tidework.manifests.timing import summary_of
from tidework.settings import Settings

_WITH_A_SCHEDULER = "with `tidework dev`, `tidework scheduler` or the operator running"


@click.group()
def cron() -> None:
    """CronTasks as the scheduler mirrored them into Redis, and schedules without any server."""


for _command in (next_fires, explain, lint, import_crontab, run, suspend, resume, runs, backfill):
    cron.add_command(_command)


@cron.command("list")
@redis_option
@namespace_option
@output_option
def list_crontasks(redis_url: str | None, namespace: str | None, output: str) -> None:
    """Every CronTask with its schedule, its next and last fire, its verdicts, and why it rests."""
    settings = Settings.load(redis_url=redis_url, namespace=namespace)
    broker = connect_blocking(settings.redis_url)
    rows = []
    known = drive(find_crontasks(broker, settings.namespace))
    for found in known:
        if found.fault:
            click.echo(f"{found.name} cannot be read: {found.fault}", err=True)
            continue
        status = drive(status_of(broker, found, SystemClock().now()))
        rows.append(
            {
                "name": status.name,
                "queue": status.queue,
                "schedule": summary_of(found.document["spec"]),
                "zone": found.crontask.spec.time_zone,
                "next": [moment.isoformat() for moment in status.next_fires],
                "last": None if status.last_fire is None else status.last_fire.isoformat(),
                "active": len(status.active),
                "verdicts": {verdict.value: n for verdict, n in status.verdicts.items()},
                "by_hand": status.by_hand,
                "suspended": status.suspended,
                "reason": status.reason,
            }
        )
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(_line(row))
    if not known:
        click.echo(
            f"no CronTask is mirrored in namespace {settings.namespace}: "
            f"apply one, {_WITH_A_SCHEDULER}; --namespace names another namespace",
            err=True,
        )


def _line(row: dict[str, Any]) -> str:
    upcoming = row["next"][0] if row["next"] else "none"
    counts = ", ".join(f"{n} {name}" for name, n in row["verdicts"].items() if n) or "no fire yet"
    if row["by_hand"]:
        counts += f", {row['by_hand']} run by hand"
    text = (
        f"{row['name']}  {row['schedule']} ({row['zone']})  queue {row['queue']}  next {upcoming}  "
        f"last {row['last'] or 'never'}  active {row['active']}  {counts}"
    )
    return f"{text}  [{row['reason']}]" if row["reason"] else text
