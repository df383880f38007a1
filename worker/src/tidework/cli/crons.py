"""Commands about CronTasks: which a queue's scheduler mirrors, and running one by hand.

Those about schedules alone are in cron_shown.py, taking over a crontab is in cron_import.py.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

import click

from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import RedisBroker, connect_blocking
from tidework.cli.cron_import import import_crontab
from tidework.cli.cron_shown import explain, lint, next_fires
from tidework.cli.options import namespace_option, output_option, redis_option
from tidework.clock import SystemClock
from tidework.errors import ConfigurationError
from tidework.manifests import CronTask, parse_document
from tidework.manifests.timing import summary_of
from tidework.model.identity import QueueName
from tidework.scheduler.documents import spec_of
from tidework.scheduler.spec import manual_job
from tidework.scheduler.status import Circumstances, describe
from tidework.settings import Settings

_WITH_A_SCHEDULER = "with `tidework dev`, `tidework scheduler` or the operator running"


@click.group()
def cron() -> None:
    """CronTasks as the scheduler mirrored them into Redis, and schedules without any server."""


for _command in (next_fires, explain, lint, import_crontab):
    cron.add_command(_command)


def _broker(redis_url: str | None) -> RedisBroker:
    return connect_blocking(Settings.load(redis_url=redis_url).redis_url)


def _mirrored(broker: RedisBroker, namespace: str | None) -> list[tuple[QueueName, str, Any]]:
    chosen = Settings.load(namespace=namespace).namespace
    found = []
    for queue in drive(broker.queues()):
        if queue.namespace == chosen:
            documents = drive(broker.crontasks(queue))
            found += [(queue, uid, document) for uid, document in documents.items()]
    return found


@cron.command("list")
@redis_option
@namespace_option
@output_option
def list_crontasks(redis_url: str | None, namespace: str | None, output: str) -> None:
    """Every CronTask with its schedule, its next and last fire, its verdicts, and why it rests."""
    broker = _broker(redis_url)
    rows = []
    for queue, uid, document in _mirrored(broker, namespace):
        record = drive(broker.cron_record(queue, uid))
        crontask = _parsed(document)
        status = describe(spec_of(crontask, SystemClock().now()), record, _circumstances())
        spec = crontask.spec
        rows.append(
            {
                "name": status.name,
                "queue": status.queue,
                "schedule": summary_of(document["spec"]),
                "zone": spec.time_zone,
                "next": [moment.isoformat() for moment in status.next_fires],
                "last": None if status.last_fire is None else status.last_fire.isoformat(),
                "active": len(status.active),
                "verdicts": {verdict.value: n for verdict, n in status.verdicts.items()},
                "by_hand": status.by_hand,
                "reason": status.reason,
            }
        )
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(_line(row))
    if not rows:
        click.echo(
            f"no CronTask is mirrored in namespace {Settings.load(namespace=namespace).namespace}: "
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


def _circumstances() -> Circumstances:
    # Who leads is not ours to know here: a mirrored CronTask has a scheduler.
    return Circumstances(now=SystemClock().now(), led=True)


def _parsed(document: Any) -> CronTask:
    crontask = parse_document(document)
    assert isinstance(crontask, CronTask)
    return crontask


@cron.command("run")
@click.argument("name")
@redis_option
@namespace_option
def run_crontask(name: str, redis_url: str | None, namespace: str | None) -> None:
    """Run the CronTask NAME now, beside its schedule; print the job's id."""
    broker = _broker(redis_url)
    known = _mirrored(broker, namespace)
    for queue, uid, document in known:
        if document["metadata"]["name"] == name:
            now = SystemClock().now()
            spec = spec_of(_parsed(document), now)
            nonce = secrets.token_hex(8)
            job = manual_job(spec, nonce, now)
            drive(broker.run_now(queue, None, uid, nonce, job))
            click.echo(job.id)
            return
    names = ", ".join(sorted(document["metadata"]["name"] for _, _, document in known)) or "none"
    raise ConfigurationError(
        f"no CronTask {name!r} is mirrored in this namespace (known: {names}); "
        "is its scheduler, operator or `tidework dev` running?"
    )
