"""`tidework cron next`, `explain` and `lint`: when a schedule fires, and what it means."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click

from tidework.cli.cron_given import Given, given_by, parse_moment, refusal, when_options
from tidework.cli.options import output_option
from tidework.cli.remarks.dst import differences
from tidework.cli.remarks.schedule import LOOKED_AHEAD, alike, remarks, sentence
from tidework.clock import SystemClock
from tidework.crontasks.language import Language
from tidework.errors import ConfigurationError, ScheduleError
from tidework.model.schedules.cron import load_zone, tzdata_version

_FAULT = 1


def _after_option(command: Any) -> Any:
    return click.option("--after", metavar="TIME", help="From this instant on.  [default: now]")(
        command
    )


@click.command("next")
@when_options
@click.option("-c", "--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@_after_option
@click.option("--here", metavar="ZONE", help="Your zone.  [default: this machine's]")
@output_option
def next_fires(count: int, after: str | None, here: str | None, output: str, **given: Any) -> None:
    """The next fires of a SCHEDULE (in quotes), of an interval, or of CronTasks in files.

    Each in its zone and in yours. Where the two DST policies differ within them, both are shown.
    """
    now = parse_moment(after, SystemClock().now())
    mine = None if here is None else load_zone(here)
    found = [_upcoming(each, now, count, mine) for each in _resolved(given, now)]
    if output == "json":
        click.echo(json.dumps(found, indent=2, default=datetime.isoformat))
        return
    for each in found:
        click.echo(_head(each))
        for row in each["fires"]:
            only = f"   only under dst {row['only']}" if row["only"] else ""
            mark = " " if row["only"] in (None, each["dst"]) else "-"
            zoned, here = (_written(row[name]) for name in ("fire", "here"))
            click.echo(f"{mark} {zoned}   here {here}{only}")
        if not each["fires"]:
            click.echo("  it never fires again")
        elif any(row["only"] not in {None, each["dst"]} for row in each["fires"]):
            click.echo(f"  (- does not fire: the dst of this schedule is {each['dst']})")


def _head(found: dict[str, Any]) -> str:
    return f"{found['schedule']}   {found['zone']}, dst {found['dst']}, tzdata {found['tzdata']}"


def _resolved(options: dict[str, Any], now: datetime) -> list[Given]:
    """What was given; a refused schedule ends the command with a mark below the culprit."""
    given = given_by(options, now)
    for each in given:
        try:
            each.rules()
        except ScheduleError as error:
            raise ConfigurationError(f"the schedule is refused\n{refusal(error)}") from error
    return given


def _upcoming(given: Given, now: datetime, count: int, mine: ZoneInfo | None) -> dict[str, Any]:
    rules, other = given.rules(), given.rules(given.other_dst)
    fires = rules.upcoming(now, count)
    others: tuple[datetime, ...] = ()
    if fires and rules.schedule.fingerprint != other.schedule.fingerprint:
        others = tuple(fire for fire in other.upcoming(now, 2 * count) if fire <= fires[-1])
    zone = load_zone(given.timing.time_zone)
    chosen, rival = given.timing.dst.value, given.other_dst.value

    def row(fire: datetime) -> dict[str, Any]:
        both = fire in fires and (not others or fire in others)
        return {
            "fire": fire.astimezone(zone),
            "here": fire.astimezone(mine),  # None: this machine's zone
            "utc": fire,
            "only": None if both else chosen if fire in fires else rival,
        }

    return {
        "schedule": given.title,
        "zone": given.timing.time_zone,
        "dst": chosen,
        "tzdata": tzdata_version(),
        "fires": [row(fire) for fire in sorted({*fires, *others})],
    }


def _written(fire: datetime) -> str:
    return f"{fire:%a %Y-%m-%d %H:%M:%S %z}"


@click.command()
@when_options
@click.option(
    "-l",
    "--language",
    type=click.Choice([each.value for each in Language]),
    default=Language.ENGLISH.value,
    show_default=True,
    help="Of the description.",
)
@_after_option
def explain(language: str, after: str | None, **given: Any) -> None:
    """What a SCHEDULE means in plain words, and what happens where the clock jumps."""
    from tidework.crontasks.words import words_of

    chosen = Language(language)
    now = parse_moment(after, SystemClock().now())
    for each in _resolved(given, now):
        timing = each.timing
        zone = load_zone(timing.time_zone)
        head = {"schedule": each.title, "zone": timing.time_zone, "dst": timing.dst.value}
        click.echo(_head({**head, "tzdata": tzdata_version()}))
        click.echo(f"  {words_of(each.schedule, each.timing.exclude, chosen)}")
        found = differences(each, now, now + LOOKED_AHEAD)
        for difference in found:
            click.echo(f"  {sentence(difference, zone, chosen)}")
        if not found:
            click.echo(f"  {alike(chosen)}")


@click.command()
@when_options
@_after_option
def lint(after: str | None, **given: Any) -> None:
    """Refuse a wrong SCHEDULE with its place and a hint, and warn of common mistakes.

    Exit status 1 if one is refused.
    """
    now = parse_moment(after, SystemClock().now())
    faults = 0
    for each in given_by(given, now):
        try:
            found = remarks(each, now)
        except ScheduleError as error:
            click.echo(refusal(error))
            faults += 1
            continue
        click.echo(f"{each.title}: {'ok' if not found else 'ok, but'}")
        for remark in found:
            click.echo(f"  {remark}")
    if faults:
        raise click.exceptions.Exit(_FAULT)
