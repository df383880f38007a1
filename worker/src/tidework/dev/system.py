"""The whole system: server, scheduler, autoscaled workers, reload, in one process tree.

Start: documents are read (faults end it before anything runs), server, queues, then the loops.
Shutdown order, on SIGINT or SIGTERM: no more reloads, decisions and fires; workers drain; then
the broker is closed and the server stopped, its data written. A second signal makes the workers
release what runs at once, a third kills them: their leases bring the jobs back.
If this process is killed, the kernel ends the workers and the server (see tether.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.clock import SystemClock
from tidework.dev.applications import Applications
from tidework.dev.autoscaler import Autoscaler, ScaledQueue
from tidework.dev.console import Console
from tidework.dev.local_api import LocalApi
from tidework.dev.local_workers import LocalWorkers
from tidework.dev.reload import Snapshot, snapshot_of, watch
from tidework.dev.server_guard import ServerGuard
from tidework.dev.valkey import EmbeddedValkey
from tidework.errors import BrokerError, TideworkError
from tidework.loop import Loop, accept_signals
from tidework.maintenance.upkeep import Upkeep
from tidework.manifests import ManifestErrors, Manifests, read_manifests
from tidework.model.fire import Verdict
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits
from tidework.scheduler.documents import spec_of
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.service import SchedulerService

_EXIT_WAIT = timedelta(seconds=15)
"""Beyond the grace of the workers, which end by themselves within it."""


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What `tidework dev` was asked for.

    redis_url:  another server than the embedded one, '' without
    data_dir:   where the embedded server keeps its data, None = a temporary folder
    redis_port: of the embedded server, 0 = any free one
    dashboard_port: of the HTTP API, 0 = any free one, None = the usual one or the next free one
    """

    paths: tuple[Path, ...]
    namespace: str = "default"
    redis_url: str = ""
    data_dir: Path | None = None
    redis_port: int = 0
    dashboard_port: int | None = None
    log_format: str = "human"
    log_level: str = "info"


class DevSystem:
    """Composes and runs everything; ``run`` returns the exit code."""

    def __init__(self, options: DevOptions, console: Console) -> None:
        self._options = options
        self._console = console
        self._queues: dict[QueueName, ScaledQueue] = {}
        self._manifests: Manifests | None = None
        self._before: Snapshot = {}
        self._stopping = asyncio.Event()
        self._signals = 0
        self._cause = ""

    async def run(self) -> int:
        """Until a signal. Raises ConfigurationError and BrokerError for what cannot start."""
        self._before = snapshot_of(self._options.paths)
        manifests = read_manifests(self._options.paths, namespace=self._options.namespace)
        server = None
        if not self._options.redis_url:
            server = EmbeddedValkey(self._options.data_dir, self._options.redis_port)
        with self._handling_signals():
            try:
                if server is not None:
                    await server.start()
                url = self._options.redis_url or (server.url if server else "")
                await self._serve(manifests, url, server)
            finally:
                if server is not None:
                    await server.stop()
        self._console.tell("stopped", reason=self._cause)
        return 0

    async def _serve(self, manifests: Manifests, url: str, server: EmbeddedValkey | None) -> None:
        broker = connect(url, self._limits)
        clock = SystemClock()
        service = SchedulerService(broker, CronRegistry(), keeper=Upkeep)
        service.scheduler.counters.listeners.append(self._tell_fire)
        # What it would log of each fire, the console tells.
        logging.getLogger("tidework.scheduler").setLevel(logging.WARNING)
        terms = service.leadership
        autoscaler = Autoscaler(broker, terms, clock, self._console, self._queues)
        self._applications = Applications(self._common_environment(url))
        api = LocalApi(broker, self._options.namespace, self._options.dashboard_port)
        try:
            troubles = await self._applications.start(manifests)
            await self._apply(manifests, broker, service, url)
            self._tell_started(manifests, url if server is None else server.told_url, api.url)
            for error in troubles:
                self._console.tell("refused", error=f"{error}; no worker of it can start")
            trouble = (BrokerError,)
            loops = [
                Loop("autoscaler", autoscaler.tick, tolerates=trouble),
                Loop("status", autoscaler.tell_status, tolerates=trouble),
            ]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(loop.run(), name=loop.name) for loop in loops]
                tasks.append(group.create_task(service.run(), name="scheduler"))
                serving = group.create_task(api.run(), name="api")
                reloading = self._reload(broker, service, url)
                tasks.append(group.create_task(reloading, name="reload"))
                guards = [] if server is None else [ServerGuard(server, self._console)]
                guarding = [Loop("server", guard.tick) for guard in guards]
                for guard in guarding:
                    group.create_task(guard.run(), name="server")
                await self._stopping.wait()
                await self._end_loops(tasks, loops, service)
                await self._drain()
                api.stop()
                await serving
                for guard in guarding:
                    guard.stop()
        finally:
            for scaled in self._queues.values():
                scaled.workers.kill_all()
            api.close()
            await broker.close()

    async def _end_loops(
        self, tasks: Sequence[asyncio.Task[None]], loops: Sequence[Loop], service: SchedulerService
    ) -> None:
        for loop in loops:
            loop.stop()
        service.stop()
        for task in tasks:
            if task.get_name() == "reload":
                task.cancel()
        await asyncio.wait(tasks)

    def _limits(self, queue: QueueName) -> QueueLimits:
        scaled = self._queues.get(queue)
        return QueueLimits() if scaled is None else scaled.queue.limits

    async def _apply(
        self,
        manifests: Manifests,
        broker: RedisBroker,
        service: SchedulerService,
        url: str,
        changed: Collection[QueueName] = (),
    ) -> None:
        """Make the running system that of the documents. changed: queues with other code"""
        now = SystemClock().now()
        specs = [spec_of(crontask, now) for crontask in manifests.crontasks]
        wanted = {queue.queue_name: queue for queue in manifests.queues}
        for name in wanted:
            await broker.open_queue(name)
        service.replace(specs, wanted)
        for name, queue in wanted.items():
            folder = manifests.folders[name]
            scaled = self._queues.get(name)
            if scaled is None:
                workers = LocalWorkers(queue, folder, self._common_environment(url))
                self._queues[name] = ScaledQueue(queue, workers)
                continue
            scaled.queue, scaled.leaving = queue, False
            scaled.workers.follow(queue, folder, code_changed=name in changed)
        for name, scaled in self._queues.items():
            scaled.leaving = name not in wanted
        self._manifests = manifests

    def _common_environment(self, url: str) -> dict[str, str]:
        return {
            "TIDEWORK_REDIS_URL": url,
            # They are part of the URL, unless the server is our own and wants neither.
            "TIDEWORK_REDIS_USERNAME": "",
            "TIDEWORK_REDIS_PASSWORD_FILE": "",
            "TIDEWORK_REDIS_URL_FILE": "",
            "TIDEWORK_LOG_FORMAT": self._options.log_format,
            "TIDEWORK_LOG_LEVEL": self._options.log_level,
        }

    async def _reload(self, broker: RedisBroker, service: SchedulerService, url: str) -> None:
        applications = self._applications
        async for edits in watch(
            self._options.paths, self._before, self._folders, self._commands_files
        ):
            if not (applications.note(edits.code) or edits.documents):
                continue  # a file beside the application
            try:
                found = read_manifests(self._options.paths, namespace=self._options.namespace)
                # Before anything ends: what does not load is told, and the others work on.
                changed = await applications.reload(found)
                await self._apply(found, broker, service, url, changed)
            except ManifestErrors as error:
                for fault in error.errors:
                    self._console.tell("refused", error=f"{fault}; what ran before goes on")
            except TideworkError as error:
                self._console.tell("refused", error=f"{error}; what ran before goes on")
            else:
                applications.take_over()
                what = "the application's code" if changed else "the documents"
                self._console.tell("reloaded", what=what)

    def _folders(self) -> set[Path]:
        assert self._manifests is not None
        return set(self._manifests.folders.values())

    def _commands_files(self) -> set[Path]:
        assert self._manifests is not None
        return set(self._manifests.commands_files)

    def _tell_started(self, manifests: Manifests, url: str, api_url: str) -> None:
        self._console.tell(
            "started",
            pid=os.getpid(),
            api_url=api_url,
            redis_url=url,
            queues=[queue.metadata.name for queue in manifests.queues],
            crontasks=[crontask.metadata.name for crontask in manifests.crontasks],
        )

    def _tell_fire(self, cron: str, verdict: Verdict, fire: datetime, job: str) -> None:
        at = fire.isoformat(timespec="seconds")
        self._console.tell("fired", crontask=cron, verdict=verdict.value, fire=at, job_id=job)

    @contextlib.contextmanager
    def _handling_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        accept_signals()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        self._signals += 1
        self._cause = self._cause or number.name
        self._stopping.set()
        for scaled in self._queues.values():
            if self._signals == 2:
                scaled.workers.release_all()
            elif self._signals > 2:
                scaled.workers.kill_all()

    async def _drain(self) -> None:
        alive = [scaled for scaled in self._queues.values() if scaled.workers.alive]
        count = sum(scaled.workers.alive for scaled in alive)
        if count:
            self._console.tell("draining", reason=self._cause, workers=count)
        for scaled in alive:
            scaled.workers.drain_all()
        deadline = asyncio.get_running_loop().time() + self._longest_grace(alive)
        while any(scaled.workers.alive for scaled in alive):
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(0.05)
            for scaled in alive:
                scaled.workers.reap()

    def _longest_grace(self, alive: Sequence[ScaledQueue]) -> float:
        graces = [
            min(s.queue.spec.hard_timeout_seconds + 10, s.queue.spec.max_grace_seconds)
            for s in alive
        ]
        return max(graces, default=0) + _EXIT_WAIT.total_seconds()
