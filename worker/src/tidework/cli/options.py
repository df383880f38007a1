"""Options that several commands share. Each has a twin in the environment, TIDEWORK_*."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from tidework.client import Client
from tidework.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class QueueCommand(click.Command):
    """Has --queue, and says so to whoever gives the queue as an argument."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, with a hint about arguments that are left over."""
        left = super().parse_args(ctx, args)
        if left:
            ctx.fail(
                f"Got unexpected extra argument ({' '.join(left)}); a queue is given as "
                f"--queue {left[0]}"
            )
        return left


def redis_option(command: F) -> F:
    """--redis-url"""
    return click.option(
        "--redis-url",
        envvar="TIDEWORK_REDIS_URL",
        help="redis://USER:PASSWORD@HOST:PORT/DB, redis+sentinel://..., redis+cluster://...",
    )(command)


def namespace_option(command: F) -> F:
    """--namespace"""
    return click.option(
        "-n", "--namespace", envvar="TIDEWORK_NAMESPACE", help="Namespace of the queues."
    )(command)


def log_options(command: F) -> F:
    """--log-format and --log-level"""
    command = click.option(
        "--log-format",
        type=click.Choice(["auto", "human", "json"], case_sensitive=False),
        envvar="TIDEWORK_LOG_FORMAT",
        help="auto: human on a terminal, else JSON lines.",
    )(command)
    return click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
        envvar="TIDEWORK_LOG_LEVEL",
    )(command)


def output_option(command: F) -> F:
    """-o"""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        help="Form of output.",
    )(command)


def client_of(redis_url: str | None, namespace: str | None) -> Client:
    """A client for one command."""
    return Client(Settings.load(redis_url=redis_url, namespace=namespace))


def past_moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """An ISO 8601 time with its zone (2026-11-30T08:00:00+01:00), or so long ago: 90s 15m 2h 7d."""
    return None if value is None else _moment(value, -1)


def coming_moment(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> datetime | None:
    """As ``past_moment``; a span counts from now on."""
    return None if value is None else _moment(value, 1)


def _moment(value: str, sign: int) -> datetime:
    if span := re.fullmatch(r"(\d{1,6})([smhd])", value):
        return datetime.now(UTC) + sign * timedelta(seconds=int(span[1]) * _SECONDS[span[2]])
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither an ISO 8601 time nor a span such as 15m, 2h, 7d"
        ) from error
    if moment.tzinfo is None:
        full = moment.isoformat()
        raise click.BadParameter(f"{value!r} has no time zone; write {full}Z or {full}+01:00")
    return moment
