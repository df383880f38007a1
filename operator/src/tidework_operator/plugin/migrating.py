"""``kubectl tidework migrate-cronjob``: a CronJob into documents and the command that it runs.

Nothing in the cluster is changed: the CronJob goes on until somebody suspends it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import click
import yaml

from tidework.errors import ConfigurationError
from tidework.manifests import ManifestErrors, read_manifests
from tidework.migration.cronjob import CronJobOptions, take_over
from tidework.migration.takeover import write_files
from tidework.model.identity import is_dns_label
from tidework_operator.cluster import Kind, Object
from tidework_operator.plugin.session import Choice, Session, ask_cluster, cluster_options


@click.command("migrate-cronjob")
@click.argument("name", required=False)
@click.option("-f", "--file", type=click.File("r"), help="Of the CronJob, - for standard input.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the files.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
@click.option("--queue", default="", help="Name of the TaskQueue.  [default: the CronJob's]")
@click.option("--image", default="", help="Of the workers: Tidework's with the command's files.")
@click.option("--module", default="cronjob_tasks", show_default=True, help="Of the command.")
@click.option("--entrypoint", multiple=True, help="Of the CronJob's image; again for each word.")
@cluster_options
@click.pass_context
def migrate_cronjob(
    here: click.Context,
    /,
    *,
    name: str | None,
    file: TextIO | None,
    output: Path,
    overwrite: bool,
    **given: Any,
) -> int:
    """Write the CronJob NAME, or that of a file, as a CronTask, a TaskQueue and its command.

    Nothing is changed in the cluster: apply the documents, then suspend the CronJob.
    """
    if (name is None) == (file is None):
        raise ConfigurationError("give NAME, a CronJob of the cluster, or --file: one of the two")
    choice = Choice(*(given.pop(each) for each in ("kubeconfig", "context", "namespace")))
    options = CronJobOptions(**given)
    if options.queue and not is_dns_label(options.queue):
        raise ConfigurationError(f"--queue {options.queue!r} is not a DNS label: a-z, 0-9, '-'")
    if not options.module.isidentifier():
        raise ConfigurationError(
            f"--module {options.module!r} is not a name that Python can import"
        )
    if file is not None:
        cronjob = _read(file)
    else:
        cronjob = ask_cluster(here, choice, lambda session: _get(session, name or ""))
    found = take_over(cronjob, options)
    files = write_files(found, output, overwrite=overwrite)
    for note in found.notes:
        click.echo(str(note), err=True)
    click.echo(f"{found.source} is in {', '.join(map(str, files))}")
    return _judged(output)


async def _get(session: Session, name: str) -> Object:
    found = await session.cluster.get(Kind.CRON_JOB, session.namespace or "", name)
    if found is None:
        raise ConfigurationError(f"no CronJob {name!r} in namespace {session.namespace}")
    # The API server leaves it away, where it is known anyway.
    return {"kind": Kind.CRON_JOB.value.kind, **found}


def _read(file: TextIO) -> Any:
    try:
        return yaml.safe_load(file)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file.name} is not a YAML document: {error}") from error


def _judged(folder: Path) -> int:
    """The exit status: 1 if something has to be mended by hand."""
    try:
        read_manifests([folder])
    except ManifestErrors as error:
        click.echo(f"to be corrected by hand:\n{error}", err=True)
        return 1
    return 0
