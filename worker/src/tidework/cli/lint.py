"""`tidework lint`: what a cluster or `tidework dev` would say of documents, without either."""

from __future__ import annotations

from pathlib import Path

import click

from tidework.cli.cron_given import given_in
from tidework.cli.cron_remarks import remarks
from tidework.cli.options import namespace_option
from tidework.clock import SystemClock
from tidework.manifests import ManifestErrors, Manifests, read_manifests
from tidework.manifests.commands_file import commands_files, read_commands
from tidework.model.cron import tzdata_version
from tidework.settings import Settings

_FAULT = 1


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@namespace_option
def lint(files: tuple[Path, ...], namespace: str | None) -> None:
    """Check the TaskQueue and CronTask documents of FILES: a line for each fault, and remarks.

    Commands files among them are checked as well. Exit status 1 if there is a fault.
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
        click.echo("\n".join(faults))
        raise click.exceptions.Exit(_FAULT)
    for queue in manifests.queues:
        for fault in queue.cluster_faults:
            click.echo(f"TaskQueue {queue.queue_name}: a cluster refuses it: {fault}")
    now = SystemClock().now()
    for given in given_in(manifests, now):
        for remark in remarks(given, now):
            click.echo(f"CronTask {given.title}: {remark}")
    queues, crontasks = len(manifests.queues), len(manifests.crontasks)
    also = f", {len(commands)} commands file(s)" if commands else ""
    click.echo(
        f"{queues} TaskQueue(s), {crontasks} CronTask(s){also}: ok; tzdata {tzdata_version()}"
    )
