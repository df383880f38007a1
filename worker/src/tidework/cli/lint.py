"""`tidework lint`: what a cluster or `tidework dev` would say of documents, without either."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from tidework.cli.cron_given import given_in
from tidework.cli.options import namespace_option
from tidework.cli.remarks.schedule import remarks
from tidework.clock import SystemClock
from tidework.manifests import ManifestErrors, Manifests, read_manifests
from tidework.manifests.commands_file import commands_files, read_commands
from tidework.model.schedules.cron import tzdata_version
from tidework.settings import Settings
from tidework.trial.documents import Checked, check_documents

_FAULT = 1


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--apps/--no-apps",
    default=True,
    help="Import the applications, each from the folder of its TaskQueue, and check the tasks and "
    "params of CronTasks against them.  [default: --apps]",
)
@namespace_option
def lint(files: tuple[Path, ...], namespace: str | None, *, apps: bool) -> None:
    """Check the TaskQueue and CronTask documents of FILES: a line for each fault, and remarks.

    Commands files among them are checked as well. Exit status 1 if there is a fault. An
    application that cannot be imported on this machine is reported, but is not a fault: it may
    be complete where its workers run.
    """
    commands = commands_files(files)
    documents = [file for file in files if file not in commands]
    chosen = Settings.load(namespace=namespace).namespace
    manifests = Manifests((), (), (), {})
    faults = []
    for file in commands:
        try:
            read_commands(file)
        except ManifestErrors as error:
            faults.append(str(error))
    try:
        if documents:
            manifests = read_manifests(documents, namespace=chosen)
    except ManifestErrors as error:
        faults.append(str(error))
    if faults:
        raise _refusal(faults)
    checked = asyncio.run(check_documents(manifests)) if apps else Checked()
    if found := [*checked.broken, *checked.faults]:
        raise _refusal([str(fault) for fault in found])
    for queue in manifests.queues:
        for fault in queue.cluster_faults:
            click.echo(f"TaskQueue {queue.queue_name}: a cluster refuses it: {fault}")
    now = SystemClock().now()
    for given in given_in(manifests, now):
        for remark in remarks(given, now):
            click.echo(f"CronTask {given.title}: {remark}")
    for left_out in checked.unchecked:
        click.echo(f"not checked: {left_out}")
    queues, crontasks = len(manifests.queues), len(manifests.crontasks)
    also = f", {len(commands)} commands file(s)" if commands else ""
    click.echo(
        f"{queues} TaskQueue(s), {crontasks} CronTask(s){also}: "
        f"{_verdict(manifests, checked, apps=apps)}; tzdata {tzdata_version()}"
    )


def _refusal(faults: list[str]) -> click.exceptions.Exit:
    click.echo("\n".join(faults))
    return click.exceptions.Exit(_FAULT)


def _verdict(manifests: Manifests, checked: Checked, *, apps: bool) -> str:
    """What was not looked at is not called ok."""
    left_out = len(checked.unchecked) if apps else len(manifests.queues)
    if not left_out:
        return "ok"
    return f"ok as documents; tasks and params were not checked in {left_out} TaskQueue(s)"
