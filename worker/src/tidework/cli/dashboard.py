"""`tidework dashboard`: what can be seen and done, over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from tidework.cli.options import log_options, namespace_option, redis_option
from tidework.settings import DASHBOARD_PORT, DashboardSettings


@click.command()
@click.option(
    "--host",
    "dashboard_host",
    envvar="TIDEWORK_DASHBOARD_HOST",
    help="Address to listen on.  [default: 127.0.0.1]",
)
@click.option(
    "--port",
    "dashboard_port",
    type=int,
    envvar="TIDEWORK_DASHBOARD_PORT",
    help=f"Port, 0 = any that is free.  [default: {DASHBOARD_PORT}]",
)
@click.option(
    "--tokens-file",
    "dashboard_tokens_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TIDEWORK_DASHBOARD_TOKENS_FILE",
    help="TOML file of tokens, and what each may do; without it the API is read-only.",
)
@click.option(
    "--access-file",
    "dashboard_access_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TIDEWORK_DASHBOARD_ACCESS_FILE",
    help="TOML file that says which proxy or provider identifies people, and what they may do.",
)
@click.option(
    "--kubernetes",
    "dashboard_kubernetes",
    is_flag=True,
    default=None,
    envvar="TIDEWORK_DASHBOARD_KUBERNETES",
    help="Take tokens of the cluster that this runs in; RBAC on taskqueues says who may do what.",
)
@redis_option
@namespace_option
@log_options
def dashboard(**given: Any) -> None:
    """Serve the HTTP API: queues, jobs, schedules and workers as JSON.

    Without tokens it serves this machine alone, and changes nothing.
    """
    from tidework.api.program import run_api
    from tidework.logs import configure_logs

    settings = DashboardSettings.load(**given)
    configure_logs(settings.log_format, settings.log_level)
    asyncio.run(run_api(settings))
