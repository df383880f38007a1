"""The worker processes of one queue on this machine: what a Deployment is in a cluster.

A worker is started, told to drain by SIGTERM, or found ended. One that ends without being told is
started again with growing waits, as Kubernetes does with a crash loop.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidework.manifests import CLUSTER_FIELDS, TaskQueue
from tidework.manifests.worker_environment import APP_VERSION_VARIABLE, worker_environment
from tidework.scaling.decision import ReplicaStates

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
STEADY_S = 10.0
"""A worker that ran for so long was no part of a crash loop."""


@dataclass(slots=True)
class LocalWorker:
    """One worker process; ``generation`` is that of the spec it was started with."""

    name: str
    process: subprocess.Popen[bytes]
    generation: int
    started: float
    draining: bool = False


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """A worker ended by itself; ``wait``: seconds until the next one is started."""

    worker: str
    cause: str
    wait: float


class LocalWorkers:
    """The workers of one queue.

    queue: its document; folder: where its app is imported from; common: environment of all workers
    """

    def __init__(self, queue: TaskQueue, folder: Path, common: Mapping[str, str]) -> None:
        self._common = dict(common)
        self._workers: list[LocalWorker] = []
        self._count = 0
        self._failures = 0
        self._not_before = 0.0
        self._not_started: list[WorkerExit] = []
        self._generation = 0
        self._queue = queue
        self._folder = folder

    def follow(self, queue: TaskQueue, folder: Path, *, code_changed: bool = False) -> None:
        """Take a new spec; workers of the old one drain if it concerns them."""
        if code_changed or (queue, folder) != (self._queue, self._folder):
            before = _worker_part(self._queue, self._folder)
            self._queue, self._folder = queue, folder
            if code_changed or _worker_part(queue, folder) != before:
                self._generation += 1
                self._failures = 0
                self._not_before = 0.0
        for worker in self._serving():
            if worker.generation != self._generation:
                self._drain(worker)

    @property
    def app_version(self) -> str:
        """Of the application that workers are started with; another one after each change."""
        return f"{os.getpid()}.{self._generation}"

    @property
    def replicas(self) -> int:
        """Workers that are not draining."""
        return len(self._serving())

    @property
    def alive(self) -> int:
        """Worker processes, draining ones included."""
        return len(self._workers)

    def states(self, present: Collection[str], busy: Collection[str]) -> ReplicaStates:
        """Workers by state; ``present`` and ``busy`` hold incarnations."""
        here = {_worker_of(incarnation) for incarnation in present}
        working = {_worker_of(incarnation) for incarnation in busy}
        serving = self._serving()
        held = sum(worker.name in working for worker in serving)
        starting = sum(w.name not in here and w.name not in working for w in serving)
        return ReplicaStates(
            starting=starting,
            busy=held,
            idle=len(serving) - held - starting,
            draining=len(self._workers) - len(serving),
        )

    def scale(self, replicas: int, busy: Collection[str], unwanted: Collection[str] = ()) -> None:
        """Start what is missing; drain what is too much: idle ones, never a busy one.

        unwanted: those whom a person has claim nothing more go first
        """
        serving = self._serving()
        if replicas > len(serving) and time.monotonic() >= self._not_before:
            for _ in range(replicas - len(serving)):
                if not self._start():
                    break
        working = {_worker_of(incarnation) for incarnation in busy}
        named = {_worker_of(incarnation) for incarnation in unwanted}
        idle = [worker for worker in reversed(serving) if worker.name not in working]
        idle.sort(key=lambda worker: worker.name not in named)
        for worker in idle[: max(0, len(serving) - replicas)]:
            self._drain(worker)

    def reap(self) -> list[WorkerExit]:
        """Forget ended processes; those that were not told to end are returned, and those that
        could not be started."""
        exits, self._not_started = self._not_started, []
        for worker in list(self._workers):
            code = worker.process.poll()
            if code is None:
                continue
            self._workers.remove(worker)
            if worker.draining:
                continue
            if time.monotonic() - worker.started > STEADY_S:
                self._failures = 0
            exits.append(self._failed(worker.name, _cause(code)))
        return exits

    def _failed(self, name: str, cause: str) -> WorkerExit:
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(self._failures, 10))
        self._failures += 1
        self._not_before = time.monotonic() + wait
        return WorkerExit(name, cause, wait)

    def drain_all(self) -> None:
        """Have all end after what they run."""
        for worker in self._serving():
            self._drain(worker)

    def release_all(self) -> None:
        """Have draining workers release what they run, uncounted, and end now."""
        for worker in self._workers:
            # Another signal than that of the drain: two equal ones that come at once are one.
            worker.process.send_signal(signal.SIGINT)

    def kill_all(self) -> None:
        """SIGKILL: their jobs run again when the leases are over."""
        for worker in self._workers:
            worker.process.kill()

    def _serving(self) -> list[LocalWorker]:
        return [worker for worker in self._workers if not worker.draining]

    def _drain(self, worker: LocalWorker) -> None:
        worker.draining = True
        worker.process.send_signal(signal.SIGTERM)

    def _start(self) -> bool:
        self._count += 1
        name = f"dev-{os.getpid()}-{self._queue.metadata.name}-{self._count}"
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "tidework.worker"],
                cwd=self._folder,
                env=self._environment(name),
                stdin=subprocess.DEVNULL,
                # Its own session: Ctrl-C reaches `tidework dev` alone, which drains in order.
                start_new_session=True,
            )
        except OSError as error:  # its folder is gone, or the system gives no more processes
            self._not_started.append(self._failed(name, f"it cannot be started: {error}"))
            return False
        self._workers.append(LocalWorker(name, process, self._generation, time.monotonic()))
        return True

    def _environment(self, name: str) -> dict[str, str]:
        own = {
            "TIDEWORK_PARENT_PID": str(os.getpid()),
            "TIDEWORK_WORKER_NAME": name,
            APP_VERSION_VARIABLE: self.app_version,
        }
        given = self._queue.plain_env
        return {**os.environ, **self._common, **given, **worker_environment(self._queue), **own}


def _worker_part(queue: TaskQueue, folder: Path) -> tuple[object, ...]:
    """What a running worker was started with: everything but how many of them there are."""
    unrelated = {"min_replicas", "max_replicas", "scaling", *CLUSTER_FIELDS}
    return queue.queue_name, folder, queue.spec.model_dump_json(exclude=unrelated)


def _worker_of(incarnation: str) -> str:
    return incarnation.rpartition(".")[0]


def _cause(code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if code == 2:
        return "it could not start, its message says why"
    return f"exit code {code}"
