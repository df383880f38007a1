"""What a command about schedules is given: expressions and options, or CronTasks of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from tidework.errors import ConfigurationError, ScheduleError
from tidework.manifests import CronTask, Manifests, read_manifests
from tidework.manifests.timing import Timing
from tidework.model.schedules.cron import DstPolicy, Schedule, load_zone
from tidework.scheduler.documents import spec_of
from tidework.scheduler.due import FireRules

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Given:
    """A schedule to speak of. ``title`` names it in output; ``spread`` is what H is hashed from."""

    title: str
    timing: Timing
    spread: str | None
    start: datetime | None = None
    end: datetime | None = None

    def rules(self, dst: DstPolicy | None = None) -> FireRules:
        """When it fires, under another policy if one is given. Raises ScheduleError."""
        timing = self.timing if dst is None else replace(self.timing, dst=dst)
        return FireRules(timing.schedule(self.spread), start=self.start, end=self.end)

    @property
    def schedule(self) -> Schedule:
        return self.timing.schedule(self.spread)

    @property
    def other_dst(self) -> DstPolicy:
        """The policy that was not chosen."""
        return DstPolicy.CLOCK if self.timing.dst is DstPolicy.ONCE else DstPolicy.ONCE


def when_options(command: F) -> F:
    """SCHEDULE... and the options that shape it; handed over as keywords for ``given_by``."""
    options = (
        click.argument("schedules", nargs=-1, metavar="[SCHEDULE]..."),
        click.option("-z", "--time-zone", default="UTC", show_default=True, help="IANA name."),
        click.option(
            "--dst",
            type=click.Choice([policy.value for policy in DstPolicy]),
            default=DstPolicy.ONCE.value,
            show_default=True,
            help="What happens where the zone's clock jumps.",
        ),
        click.option("--every", help="An interval instead of a SCHEDULE: 90s, 5m, 1h30m."),
        click.option("--phase", help="With --every: fires come so much later."),
        click.option(
            "--exclude", multiple=True, help="Days without fires: 12-25, 2026-12-24..2027-01-01."
        ),
        click.option("--name", help="NAMESPACE/NAME of the CronTask, by which H spreads."),
        click.option(
            "-f",
            "--file",
            "files",
            multiple=True,
            type=click.Path(path_type=Path),
            help="CronTasks of this file or folder instead; may be given again.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def given_by(options: dict[str, Any], now: datetime) -> list[Given]:
    """What ``when_options`` collected. Raises ConfigurationError and what the documents refuse."""
    schedules, every, files = options["schedules"], options["every"], options["files"]
    if bool(schedules) + bool(every) + bool(files) != 1:
        raise ConfigurationError(
            "give a SCHEDULE in quotes such as '0 6 * * *' (several are one list), "
            "or --every, or --file: one of the three"
        )
    if len(schedules) > 1 and not any(" " in each or each.startswith("@") for each in schedules):
        raise ConfigurationError(
            "a SCHEDULE is one argument: put it into quotes, as in '0 6 * * *', or the shell "
            "takes it apart and replaces each * by names of files"
        )
    if options["phase"] and not every:
        raise ConfigurationError("--phase shifts an interval: give --every with it")
    if files:
        return given_in(read_manifests(files), now)
    load_zone(options["time_zone"])
    timing = Timing(
        schedules=schedules,
        every=every,
        phase=options["phase"],
        time_zone=options["time_zone"],
        dst=DstPolicy(options["dst"]),
        exclude=options["exclude"],
    )
    title = "; ".join(schedules) or f"every {every}"
    return [Given(title, timing, options["name"])]


def parse_moment(text: str | None, now: datetime) -> datetime:
    """An instant with its zone, as ISO 8601 writes it; ``now`` for None."""
    if text is None:
        return now
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{text!r} is not a time; write it as 2030-01-31T06:00:00Z"
        ) from error
    if found.utcoffset() is None:
        raise ConfigurationError(f"{text!r} has no zone; write Z or +01:00 behind it")
    return found.astimezone(UTC)


def given_in(manifests: Manifests, now: datetime) -> list[Given]:
    """The CronTasks of documents."""
    return [_of_document(found, now) for found in manifests.crontasks]


def _of_document(found: CronTask, now: datetime) -> Given:
    rules = spec_of(found, now).rules
    return Given(found.metadata.name, found.spec.timing, found.spread, rules.start, rules.end)


def refusal(error: ScheduleError) -> str:
    """A refused expression with a mark below the culprit."""
    lines = [error.expression]
    if error.position is not None:
        lines.append(f"{' ' * error.position}^ {error.reason}")
    else:
        lines.append(f"  {error.reason}")
    return "\n".join([*lines, f"  {error.hint}"] if error.hint else lines)
