"""A signal handler that raises at any step of an enqueue ends that enqueue, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.interruption import interrupted_at
from tidework import Settings, Tidework
from tidework.broker.connection import blocking_wire
from tidework.broker.connection.blocking_wire import BlockingConnections
from tidework.broker.connection.transport import BlockingTransport
from tidework.broker.redis.redis_broker import RedisBroker

PROGRAM = "tests.integration.sdk.interrupted"
INTERRUPTIONS = 3000
"""Several times as many as a C function that runs Python code has survived."""
OUR_STEPS = (
    "tidework/client.py",
    "/connection/servers.py",
    "/connection/blocking_wire.py",
    "/connection/redis_py.py",
)


@pytest.mark.parametrize("way", ["hiredis", "plain"])
def test_a_handler_that_raises_harms_no_other_enqueue(
    redis_url: str, namespace: str, way: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-m", PROGRAM, redis_url, namespace, str(INTERRUPTIONS), way],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert run.returncode == 0, f"{run.returncode}: {run.stderr[-2000:]}"
    enqueued, others = run.stdout.split(maxsplit=1)
    assert int(enqueued) > 0
    assert others.strip() == "{}", "nothing else was raised"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("way", ["hiredis", "plain"])
@pytest.mark.parametrize("is_first", [False, True], ids=["connected", "connecting"])
def test_no_step_loses_a_connection_or_hands_on_what_another_asked_for(
    redis_url: str, namespace: str, way: str, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    if way == "plain":
        monkeypatch.setattr(blocking_wire, "hiredis", None)
    app = Tidework("shop", settings=Settings(redis_url=redis_url, namespace=namespace))

    @app.task
    def work() -> None: ...

    step, inserted = 0, 0
    app.client.stats_sync("default")
    connections = connections_of(app)
    while True:
        step += 1
        if is_first:
            connections.end_idle()
        doubtful = work.options(job_id=f"interrupted-{step}")
        interrupted = interrupted_at(step, doubtful.enqueue_sync, within=OUR_STEPS)
        handle = work.options(job_id=f"whole-{step}").enqueue_sync()
        assert (handle.id, handle.inserted) == (f"whole-{step}", True)
        assert len(connections._open) <= 1
        if not interrupted:
            break
    assert step > 15, "it was interrupted at every step"
    inserted = app.client.stats_sync("default").counters["enqueued"]
    app.client.close_sync()
    assert step < inserted <= 2 * step


def connections_of(app: Tidework) -> BlockingConnections:
    """To the one server of its client."""
    broker = app.client.blocking_broker()
    assert isinstance(broker, RedisBroker)
    assert isinstance(broker.transport, BlockingTransport)
    (server,) = broker.transport._delivery._servers.opened.values()
    found = server._connections  # type: ignore[attr-defined]
    assert isinstance(found, BlockingConnections)
    return found
