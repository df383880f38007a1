"""`tidework cron import`: a crontab becomes CronTasks, a TaskQueue and the commands they run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

import click

from tidework.errors import ConfigurationError
from tidework.manifests import ManifestErrors, read_manifests
from tidework.migration.crontab import LEFT_OUT, CrontabOptions, take_over
from tidework.migration.takeover import write_files
from tidework.model.identity import is_dns_label
from tidework.model.schedules.cron import load_zone

_NOT_ALL = 1


@click.command("import")
@click.argument("crontab", type=click.File("r"))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the files.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
@click.option("--system", is_flag=True, help="A user stands before each command (/etc/crontab).")
@click.option("--queue", default="crontab", show_default=True, help="Name of the TaskQueue.")
@click.option("--module", default="crontab_tasks", show_default=True, help="Of the commands.")
@click.option("-n", "--namespace", default="", help="Written into the documents.")
@click.option("-z", "--time-zone", help="Of the crontab's machine.  [default: this machine's]")
def import_crontab(
    crontab: TextIO,
    *,
    output: Path,
    overwrite: bool,
    system: bool,
    queue: str,
    module: str,
    namespace: str,
    time_zone: str | None,
) -> None:
    """Take over a CRONTAB file, - for standard input, as CronTasks.

    Writes tidework.yaml and a Python module into the folder: what `tidework dev` and a cluster
    take. Differences are printed, and stand in a comment above the document. Exit status 1 if a
    job was left out.
    """
    for title, label in (("--queue", queue), ("--namespace", namespace or "default")):
        if not is_dns_label(label):
            raise ConfigurationError(f"{title} {label!r} is not a DNS label: use a-z, 0-9 and '-'")
    if not module.isidentifier():
        raise ConfigurationError(f"--module {module!r} is not a name that Python can import")
    zone = time_zone or machine_zone()
    load_zone(zone)
    options = CrontabOptions(queue, module, namespace, zone, with_user=system)
    try:
        text = crontab.read()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{crontab.name} is not text: {error}") from error
    found = take_over(text, f"crontab {Path(crontab.name).name}", options)
    files = write_files(found, output, overwrite=overwrite)
    for note in found.notes:
        click.echo(f"{crontab.name}: {note}", err=True)
    if not time_zone and found.taken:
        click.echo(f"using the zone of this machine: {zone}; --time-zone names another", err=True)
    click.echo(f"{len(found.taken)} CronTask(s) in {', '.join(map(str, files))}")
    _check(output)
    left_out = sum(note.text.startswith(LEFT_OUT) for note in found.notes)
    if left_out:
        click.echo(f"{left_out} line(s) left out", err=True)
        raise click.exceptions.Exit(_NOT_ALL)


def _check(folder: Path) -> None:
    """The documents are those that everything else takes."""
    try:
        read_manifests([folder])
    except ManifestErrors as error:
        print(f"to be corrected by hand:\n{error}", file=sys.stderr)
        raise click.exceptions.Exit(_NOT_ALL) from None


def machine_zone() -> str:
    """IANA name of this machine's zone, UTC if it cannot be told."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named and not named.startswith("/"):
        return named
    parts = Path(os.path.realpath("/etc/localtime")).parts
    if "zoneinfo" in parts:
        return "/".join(parts[parts.index("zoneinfo") + 1 :])
    return "UTC"
