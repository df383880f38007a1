"""The commands of ``kubectl tidework``."""

from __future__ import annotations

import secrets
from datetime import timedelta
from importlib import metadata

import click

from tidework.errors import TideworkError
from tidework.manifests.faults import suggestion
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import worker_selector
from tidework_operator.plugin.listing import crontask_table, queue_table
from tidework_operator.plugin.migrating import migrate_cronjob
from tidework_operator.plugin.reasons import explain
from tidework_operator.plugin.running import ask_for_run, outlook, wait_enqueued
from tidework_operator.plugin.session import Session, with_cluster

PROGRAM = "kubectl tidework"


class NoSuchObjectError(TideworkError):
    """The object that a command is about is not there."""


def _version() -> str:
    try:
        return metadata.version("tidework-operator")
    except metadata.PackageNotFoundError:
        return "0"


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_version(), prog_name=PROGRAM)
def root() -> None:
    """TaskQueues and CronTasks of a cluster."""


@root.command()
@with_cluster(spans_namespaces=True)
async def get(session: Session) -> None:
    """Show the queues and CronTasks of a namespace.

    STATE is the reason of the condition Ready; a ! before it says that something is wrong, and
    `kubectl describe` tells what to do.
    """
    queues = await session.cluster.list(Kind.TASK_QUEUE, namespace=session.namespace)
    crontasks = await session.cluster.list(Kind.CRON_TASK, namespace=session.namespace)
    wide = session.namespace is None
    if not queues and not crontasks:
        where = "any namespace" if wide else f"namespace {session.namespace}"
        click.echo(f"no TaskQueue and no CronTask in {where}", err=True)
        return
    parts = []
    if queues:
        parts.append(queue_table(queues, all_namespaces=wide))
    if crontasks:
        parts.append(crontask_table(crontasks, session.clock.now(), all_namespaces=wide))
    click.echo("\n\n".join(parts))


@root.command()
@click.argument("queue")
@with_cluster()
async def why(session: Session, queue: str) -> None:
    """Explain the number of replicas of QUEUE."""
    found = await _find(session, Kind.TASK_QUEUE, queue)
    pods = await session.cluster.list(
        Kind.POD, namespace=session.namespace, labels=worker_selector(queue)
    )
    click.echo(explain(found, pods, session.clock.now()))


@root.command()
@click.argument("crontask")
@click.option("--wait", is_flag=True, help="Wait until its job is enqueued; print the job's id.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds to wait.",
)
@with_cluster()
async def run(session: Session, crontask: str, *, wait: bool, timeout: float) -> None:
    """Run CRONTASK now, beside its schedule."""
    found = await _find(session, Kind.CRON_TASK, crontask)
    request = await ask_for_run(session.cluster, found, secrets.token_hex(8), session.clock)
    # What a script wants is on standard output alone.
    click.echo(outlook(found, request), err=wait)
    if wait:
        await wait_enqueued(session.cluster, request, timedelta(seconds=timeout))
        click.echo(request.job)


root.add_command(migrate_cronjob)


async def _find(session: Session, kind: Kind, name: str) -> Object:
    namespace = session.namespace or ""
    found = await session.cluster.get(kind, namespace, name)
    if found is not None:
        return found
    others = await session.cluster.list(kind, namespace=namespace)
    names = sorted(other["metadata"]["name"] for other in others)
    hint = suggestion(name, names) if names else "there is none; choose the namespace with -n"
    raise NoSuchObjectError(f"no {kind.value.kind} {name!r} in namespace {namespace}; {hint}")
