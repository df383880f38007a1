"""Commands about CronTasks: which a queue's scheduler mirrors, and running one by hand."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import click

from tidework.broker.redis import RedisBroker, connect_blocking
from tidework.broker.transport import drive
from tidework.cli.options import namespace_option, output_option, redis_option
from tidework.clock import SystemClock
from tidework.errors import ConfigurationError
from tidework.model.fire import Verdict
from tidework.model.identity import QueueName
from tidework.settings import Settings


@click.group()
def cron() -> None:
    """CronTasks, as the scheduler mirrored them into Redis."""


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
    """Every CronTask with its schedule, its last fire and its verdicts."""
    broker = _broker(redis_url)
    rows = []
    for queue, uid, document in _mirrored(broker, namespace):
        record = drive(broker.cron_record(queue, uid))
        spec = document["spec"]
        rows.append(
            {
                "name": document["metadata"]["name"],
                "queue": queue.name,
                "schedule": spec.get("schedule") or f"every {spec.get('every')}",
                "zone": spec.get("timeZone", "UTC"),
                "suspended": bool(spec.get("suspend")),
                "last_fire": record.last_fire if record else None,
                "active": len(record.active) if record else 0,
                "verdicts": {v.value: record.verdicts[v] if record else 0 for v in Verdict},
            }
        )
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        last = "never"
        if row["last_fire"] is not None:
            last = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row["last_fire"]))
        counts = ", ".join(f"{name} {n}" for name, n in row["verdicts"].items() if n)
        click.echo(
            f"{row['name']}  {row['schedule']} ({row['zone']})  queue {row['queue']}  "
            f"last {last}  active {row['active']}  {counts}"
            + ("  suspended" if row["suspended"] else "")
        )


@cron.command("run")
@click.argument("name")
@redis_option
@namespace_option
def run_crontask(name: str, redis_url: str | None, namespace: str | None) -> None:
    """Run the CronTask NAME now, beside its schedule; print the job's id."""
    from tidework.manifests import CronTask, parse_document
    from tidework.scheduler.documents import spec_of
    from tidework.scheduler.spec import manual_job

    broker = _broker(redis_url)
    known = _mirrored(broker, namespace)
    for queue, uid, document in known:
        if document["metadata"]["name"] == name:
            now = SystemClock().now()
            crontask = parse_document(document)
            assert isinstance(crontask, CronTask)
            spec = spec_of(crontask, now)
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
