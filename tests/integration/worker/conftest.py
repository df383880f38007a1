"""A real worker on a real server, for every test of this folder."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.holds import Holds
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.fixtures import namespace, redis_url, valkey
from tidework.client import Client
from tidework.settings import Settings

__all__ = ["namespace", "redis_url", "valkey"]

StartWorker = Callable[..., WorkerProcess]


@contextmanager
def workers(redis_url: str, namespace: str, folder: Path) -> Iterator[StartWorker]:
    """Starts workers; whatever they leave behind is killed, and the test fails for it."""
    started: list[WorkerProcess] = []

    def start(
        app: str = "hostile",
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
        pass_fds: Sequence[int] = (),
        **settings: Any,
    ) -> WorkerProcess:
        given = {"redis_url": redis_url, "namespace": namespace, **settings}
        log = folder / f"worker-{len(started)}.log"
        started.append(WorkerProcess(app, log, given, stdin, stdout=stdout, pass_fds=pass_fds))
        return started[-1]

    yield start
    for worker in started:
        worker.end()
    left = [worker.remains() for worker in started]
    assert not any(left), f"processes outlived their worker: {left}"


@pytest.fixture
def start_worker(redis_url: str, namespace: str, tmp_path: Path) -> Iterator[StartWorker]:
    """For workers of one test."""
    with workers(redis_url, namespace, tmp_path) as start:
        yield start


@pytest.fixture
def client(redis_url: str, namespace: str) -> Client:
    """A client of the same queues as the workers."""
    return Client(Settings(redis_url=redis_url, namespace=namespace))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where jobs leave marks for the test."""
    found = tmp_path / "marks"
    found.mkdir()
    return found


@pytest.fixture
def jobs(client: Client) -> Jobs:
    """Puts jobs into the queue of the application and looks at them."""
    return Jobs(client)


@pytest.fixture
def holds(jobs: Jobs, folder: Path) -> Holds:
    """Puts jobs that the test lets end."""
    return Holds(jobs, folder)
