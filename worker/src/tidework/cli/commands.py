"""The root of the command line, and the commands that run for long: worker, scheduler, dev."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Mapping
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tidework.cli.options import log_options, namespace_option, redis_option
from tidework.settings import LogFormat, Settings, WorkerSettings, is_another_url

_COMMANDS = {
    "enqueue": "tidework.cli.jobs:enqueue",
    "job": "tidework.cli.jobs:job",
    "dashboard": "tidework.cli.dashboard:dashboard",
    "dead": "tidework.cli.dead:dead",
    "queue": "tidework.cli.queues:queue",
    "cron": "tidework.cli.crons:cron",
    "lint": "tidework.cli.lint:lint",
}


_OF_WORKERS = {
    "list": "tidework.cli.workers:list_workers",
    "get": "tidework.cli.workers:get_worker",
    "drain": "tidework.cli.workers:drain_worker",
    "stacks": "tidework.cli.workers:show_stacks",
}


class _Group(click.Group):
    """Imports commands when they are asked for: a worker needs none of the others.

    elsewhere: name -> module:attribute
    """

    def __init__(self, *args: Any, elsewhere: Mapping[str, str], **given: Any) -> None:
        super().__init__(*args, **given)
        self._elsewhere = elsewhere

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._elsewhere.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse it as click does, which would suggest none of the commands that are elsewhere."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches  # a worker never needs it

            found = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {found[0]!r}?" if found else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Group,
    elsewhere=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version_of("tidework"), prog_name="tidework")
def root() -> None:
    """Workers that rise and fall with the backlog."""


@root.group(cls=_Group, elsewhere=_OF_WORKERS, invoke_without_command=True)
@click.option("--app", envvar="TIDEWORK_APP", help="module, module:app or a file; to be given.")
@click.option(
    "--queue", multiple=True, help="Queue to serve; may be given again.  [default: default]"
)
@click.option("--slots", type=int, help="Jobs at the same time, a process each.  [default: 1]")
@click.option(
    "--async-slots", type=int, help="... instead on one event loop, for queues of async tasks."
)
@click.option("--worker-name", help="Shown in logs and presence.  [default: host name]")
@click.option(
    "--hard-timeout-seconds", type=float, help="An attempt is killed after.  [default: 600]"
)
@click.option(
    "--cancel-grace-seconds", type=float, help="A cancelled job is killed after.  [default: 5]"
)
@click.option("--max-grace-seconds", type=float, help="Bound of a drain.  [default: 3600]")
@click.option("--recycle-jobs", type=int, help="New process after so many jobs.  [default: 1000]")
@click.option("--recycle-memory-mib", type=int, help="... above so much memory.  [default: 128]")
@click.option("--probe-host", help="Address of /livez /readyz /metrics.  [default: 127.0.0.1]")
@click.option("--probe-port", type=int, help="Their port, 0 = any; none without it.")
@redis_option
@namespace_option
@log_options
@click.pass_context
def worker(ctx: click.Context, /, queue: tuple[str, ...], **given: Any) -> None:
    """Run jobs of one or more queues; or look at running workers, by one of the commands.

    --app names the module with the tasks, or a commands file (.yaml, .yml, .json).
    SIGTERM ends it after its running jobs; a second one releases them at once.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options_of_a_run(ctx, ctx.invoked_subcommand)
        return
    if not given["app"]:
        names = ", ".join(_OF_WORKERS)
        raise click.UsageError(f"give --app MODULE to run a worker, or a command: {names}")
    from tidework.worker.worker import run_worker

    settings = WorkerSettings.load(queue=queue or None, **given)
    # Whatever runs in its jobs reads these there: enqueueing, checkpoints, once, commands.
    if is_another_url(given["redis_url"]):
        os.environ.pop("TIDEWORK_REDIS_URL_FILE", None)
    for name in ("redis_url", "namespace"):
        if given[name] is not None:
            os.environ[f"TIDEWORK_{name.upper()}"] = given[name]
    raise click.exceptions.Exit(run_worker(settings))


def _refuse_options_of_a_run(ctx: click.Context, command: str) -> None:
    for option in ctx.params:
        if ctx.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{option.replace('_', '-')} before {command!r} belongs to a worker that is to "
                f"run: write options behind `tidework worker {command}`"
            )


@root.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@redis_option
@namespace_option
@log_options
def scheduler(files: tuple[Path, ...], **given: Any) -> None:
    """Fire the CronTasks of FILES, and do the upkeep of their queues.

    Run two for failover: one leads, the other takes over within seconds.
    """
    from tidework.broker.redis.redis_broker import connect
    from tidework.clock import SystemClock
    from tidework.logs import configure_logs
    from tidework.maintenance.upkeep import Upkeep
    from tidework.manifests import read_manifests
    from tidework.scheduler.documents import spec_of
    from tidework.scheduler.service import run_scheduler

    settings = Settings.load(**given)
    manifests = read_manifests(files, namespace=settings.namespace)
    limits = {queue.queue_name: queue.limits for queue in manifests.queues}
    now = SystemClock().now()
    specs = [spec_of(crontask, now) for crontask in manifests.crontasks]
    configure_logs(settings.log_format, settings.log_level)

    async def run() -> None:
        broker = connect(settings.redis_url, limits.__getitem__)
        try:
            await run_scheduler(broker, specs, limits, keeper=Upkeep)
        finally:
            await broker.close()

    asyncio.run(run())


@root.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the embedded server's data here.  [default: a temporary folder]",
)
@click.option(
    "--redis-port",
    type=click.IntRange(1, 65535),
    help="Port of the embedded server, one that is free.  [default: any free]",
)
@click.option("--redis-url", help="Use this server instead of the embedded one.")
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65535),
    help="Port of the HTTP API, 0 = any free.  [default: 8090, or the next free one]",
)
@namespace_option
@log_options
def dev(
    files: tuple[Path, ...],
    data_dir: Path | None,
    redis_port: int | None,
    redis_url: str | None,
    dashboard_port: int | None,
    **given: Any,
) -> None:
    """The whole system on this machine: server, scheduler and workers for the documents in FILES.

    FILES are YAML files, or folders of them, with TaskQueue and CronTask documents as a cluster
    takes them. Edits are taken up while it runs. Ctrl-C drains and ends it.
    """
    if redis_url:
        for flag, found in (("--redis-port", redis_port), ("--data-dir", data_dir)):
            if found is not None:
                raise click.UsageError(
                    f"{flag} belongs to the embedded server, and --redis-url names another one "
                    "to use in its place: leave one of the two out"
                )
    from tidework.dev.console import Console
    from tidework.dev.system import DevOptions, DevSystem
    from tidework.logs import configure_logs

    settings = Settings.load(**given)
    as_json = settings.log_format == "json"
    log_format: LogFormat = "json" if as_json else "human"
    configure_logs(log_format, settings.log_level)
    options = DevOptions(
        paths=files,
        namespace=settings.namespace,
        redis_url=redis_url or "",
        data_dir=data_dir,
        redis_port=redis_port or 0,
        dashboard_port=dashboard_port,
        log_format=log_format,
        log_level=settings.log_level,
    )

    async def run() -> int:
        return await DevSystem(options, Console(as_json=as_json)).run()

    raise click.exceptions.Exit(asyncio.run(run()))
