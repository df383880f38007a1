"""Commands about one CronTask: run it, suspend it, resume it, look at its history."""

from __future__ import annotations

import getpass
import json
import secrets
import socket
from datetime import datetime
from typing import Any

import click

from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import RedisBroker, connect_blocking
from tidework.cli.options import coming_moment, namespace_option, output_option, redis_option
from tidework.clock import SystemClock
from tidework.crontasks import acts
from tidework.crontasks.found import FoundCronTask, find_crontask
from tidework.crontasks.runs import summary_of_runs
from tidework.errors import EnvelopeError
from tidework.model.documents.strict_json import decode_json
from tidework.model.fire import Fire, Suspension, Verdict
from tidework.settings import Settings


def open_crontask(
    name: str, redis_url: str | None, namespace: str | None
) -> tuple[RedisBroker, FoundCronTask]:
    """The CronTask that a command is about."""
    settings = Settings.load(redis_url=redis_url, namespace=namespace)
    broker = connect_blocking(settings.redis_url)
    return broker, drive(find_crontask(broker, settings.namespace, name))


def whoever_calls() -> str:
    """For others to see who did something: user and machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


by_option = click.option("--by", default=whoever_calls, help="Who does so; you, by default.")


@click.command("run")
@click.argument("name")
@click.option("--params", help="JSON object, in place of the params of its document.")
@click.option("--reason", default="", help="Kept in its history.")
@by_option
@redis_option
@namespace_option
def run(
    name: str,
    params: str | None,
    reason: str,
    by: str,
    redis_url: str | None,
    namespace: str | None,
) -> None:
    """Run the CronTask NAME now, beside its schedule; print the job's id."""
    given = None if params is None else _params(params)
    broker, found = open_crontask(name, redis_url, namespace)
    note = f"{by}: {reason}" if reason else by
    nonce, now = secrets.token_hex(8), SystemClock().now()
    job_id, _ = drive(acts.run_now(broker, found, nonce, now, params=given, note=note))
    click.echo(job_id)


@click.command("suspend")
@click.argument("name")
@click.option("--reason", required=True, help="Shown wherever the CronTask is.")
@click.option("--until", callback=coming_moment, help="A time, or a span from now: 15m 2h 7d.")
@by_option
@redis_option
@namespace_option
def suspend(
    name: str,
    reason: str,
    until: datetime | None,
    by: str,
    redis_url: str | None,
    namespace: str | None,
) -> None:
    """Have the CronTask NAME rest until `cron resume`, whatever its document says.

    The document is not edited. What falls due meanwhile does not fire later.
    """
    broker, found = open_crontask(name, redis_url, namespace)
    now = SystemClock().now()
    answer = drive(acts.suspend(broker, found, now, by=by, reason=reason, until=until))
    told = _in_words(answer.suspension)
    if answer.before:
        click.echo(f"it was suspended already, {told}; to change that, resume it first")
    else:
        click.echo(f"suspended {told}")


@click.command("resume")
@click.argument("name")
@redis_option
@namespace_option
def resume(name: str, redis_url: str | None, namespace: str | None) -> None:
    """End the suspension of the CronTask NAME by `cron suspend`."""
    broker, found = open_crontask(name, redis_url, namespace)
    ended = drive(acts.resume(broker, found))
    told = "nobody had it suspended" if ended is None else f"resumed; it was {_in_words(ended)}"
    click.echo(told)


@click.command("runs")
@click.argument("name")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True)
@output_option
@redis_option
@namespace_option
def runs(name: str, limit: int, output: str, redis_url: str | None, namespace: str | None) -> None:
    """The last fires and runs of the CronTask NAME, the newest first, and its success rate."""
    broker, found = open_crontask(name, redis_url, namespace)
    fires = drive(broker.fires(found.queue, found.uid))
    if output == "json":
        click.echo(json.dumps([_document(fire) for fire in fires[:limit]], indent=2))
        return
    for fire in fires[:limit]:
        click.echo(_line(fire))
    click.echo(summary_of_runs(fires).in_words(), err=True)


def _params(text: str) -> dict[str, Any]:
    try:
        given = decode_json(text.encode())
    except EnvelopeError as error:
        raise click.BadParameter(str(error), param_hint="--params") from error
    if not isinstance(given, dict):
        raise click.BadParameter("has to be a JSON object", param_hint="--params")
    return given


def _in_words(found: Suspension) -> str:
    since = found.since.isoformat(timespec="seconds")
    until = "" if found.until is None else f" until {found.until.isoformat(timespec='seconds')}"
    return f"by {found.by} since {since}{until}: {found.reason}"


def _document(fire: Fire) -> dict[str, Any]:
    def moment(at: datetime | None) -> str | None:
        return None if at is None else at.isoformat(timespec="milliseconds")

    delay, duration = fire.start_delay, fire.duration
    return {
        "kind": fire.kind.value,
        "verdict": fire.verdict.value,
        "due": moment(fire.due),
        "first_due": moment(fire.first_due),
        "count": fire.count,
        "decided_at": moment(fire.decided_at),
        "lateness_seconds": fire.lateness.total_seconds(),
        "job": fire.job_id or None,
        "outcome": None if fire.outcome is None else fire.outcome.value,
        "start_delay_seconds": None if delay is None else delay.total_seconds(),
        "duration_seconds": None if duration is None else duration.total_seconds(),
        "ended_at": moment(fire.ended_at),
        "attempts": fire.attempts,
        "note": fire.note,
    }


def _line(fire: Fire) -> str:
    due = fire.due.isoformat(timespec="seconds")
    if fire.verdict is not Verdict.ENQUEUED:
        since = fire.first_due.isoformat(timespec="seconds")
        return f"{due}  {fire.verdict.value}" + (
            f"  {fire.count} fires since {since}" if fire.count > 1 else ""
        )
    words = [due, fire.kind.value, "unfinished" if fire.outcome is None else fire.outcome.value]
    words.append(f"late {fire.lateness.total_seconds():.3f} s")
    if fire.duration is not None:
        words.append(f"ran {fire.duration.total_seconds():.3f} s")
    if fire.attempts > 1:
        words.append(f"{fire.attempts} attempts")
    return "  ".join([*words, fire.job_id, *([fire.note] if fire.note else [])])
