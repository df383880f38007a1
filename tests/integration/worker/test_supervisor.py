"""The supervisor in this process, over the memory broker: a dead service ends all of it, loudly."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.processes import APPS, children_of, is_alive
from tests.support.waiting import until
from tests.unit.worker.jobs import held
from tidework.clock import SystemClock
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, Job, JobState
from tidework.model.lease import ExchangeReply, ExchangeRequest, QueueLimits
from tidework.model.outcome import OutcomeKind
from tidework.settings import WorkerSettings
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.supervisor import Supervisor

QUEUE = QueueName("here", "jobs")


@pytest.fixture(autouse=True)
def _apps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(APPS))


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker(SystemClock(), QueueLimits(lease=timedelta(seconds=1)))


async def make(broker: MemoryBroker, **settings: Any) -> Supervisor:
    given = {"app": "hostile", "namespace": "here", "queue": ("jobs",), "lease_seconds": 1.0}
    return Supervisor(WorkerSettings(**{**given, **settings}), broker)


async def wait_started(supervisor: Supervisor) -> list[int]:
    """Wait until its slots are there; returns the pids of template and children."""
    await until(supervisor.pool.places.idle, "a slot is there")
    template = supervisor._keeper.pid
    assert template is not None
    return [template, *children_of(template)]


async def end_of(broker: MemoryBroker, job_id: str) -> JobState:
    """Its state once it has ended."""

    async def look() -> JobState | None:
        record = await broker.get_job(QUEUE, job_id)
        return record.state if record and record.state in FINISHED_STATES else None

    return await until(look, f"{job_id} has ended")


def expect_gone(pids: list[int]) -> None:
    assert pids
    assert not any(map(is_alive, pids))


async def test_jobs_run_and_a_drain_leaves_no_process(broker: MemoryBroker) -> None:
    supervisor = await make(broker, slots=2)
    running = asyncio.ensure_future(supervisor.run())
    pids = await wait_started(supervisor)
    await broker.enqueue(QUEUE, [Job("a", "add", {"a": 1, "b": 2})])
    assert await end_of(broker, "a") is JobState.SUCCEEDED

    supervisor.stop.ask("the test")
    await asyncio.wait_for(running, 20)

    record = await broker.get_job(QUEUE, "a")
    assert record is not None
    assert record.result == 3
    assert await broker.workers(QUEUE) == ()
    expect_gone(pids)


async def test_what_was_claimed_in_the_last_moment_is_given_back_in_a_hurry_too(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two signals at once, and a job that the server has just claimed for us: nobody was told."""
    made = asyncio.Event()

    async def wait_then_exchange(
        queue: QueueName, timeout: timedelta, request: ExchangeRequest
    ) -> None:
        await MemoryBroker.wait_for_document(broker, queue, timeout)
        await MemoryBroker.exchange(broker, queue, request)
        made.set()
        await asyncio.Event().wait()

    async def exchange(queue: QueueName, request: ExchangeRequest) -> ExchangeReply:
        await asyncio.sleep(0.05)  # the way there
        return await MemoryBroker.exchange(broker, queue, request)

    monkeypatch.setattr(broker, "wait_then_exchange", wait_then_exchange)
    monkeypatch.setattr(broker, "exchange", exchange)
    supervisor = await make(broker)
    running = asyncio.ensure_future(supervisor.run())
    await wait_started(supervisor)
    await asyncio.wait_for(supervisor._consumers[0].starved.wait(), 20)
    await broker.enqueue(QUEUE, [Job("a", "add", {"a": 1, "b": 2})])
    await asyncio.wait_for(made.wait(), 20)

    supervisor.stop.ask("the test")
    supervisor.stop.ask("the test")
    await asyncio.wait_for(running, 20)

    found = await broker.get_job(QUEUE, "a")
    assert found is not None
    assert (found.state, found.deliveries, found.releases) == (JobState.READY, 1, 1)


async def test_a_dead_service_ends_the_worker(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    supervisor = await make(broker)
    running = asyncio.ensure_future(supervisor.run())
    pids = await wait_started(supervisor)

    async def renew(*given: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(broker, "renew", renew)
    await broker.enqueue(QUEUE, [Job("a", "hold", {"path": str(tmp_path / "a")})])

    with pytest.raises(ExceptionGroup, match="unhandled") as caught:
        await asyncio.wait_for(running, 20)

    assert caught.group_contains(ZeroDivisionError)
    expect_gone(pids)


async def test_an_error_in_a_callback_ends_the_worker(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = await make(broker)
    running = asyncio.ensure_future(supervisor.run())
    pids = await wait_started(supervisor)

    def on_started(*given: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(supervisor.pool, "on_started", on_started)
    await broker.enqueue(QUEUE, [Job("a", "add", {"a": 1, "b": 2})])

    with pytest.raises(ExceptionGroup, match="unhandled") as caught:
        await asyncio.wait_for(running, 20)

    assert caught.group_contains(ZeroDivisionError)
    expect_gone(pids)


async def test_a_system_that_gives_no_process_for_a_template_ends_no_job_and_no_worker(
    broker: MemoryBroker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervisor = await make(broker)
    running = asyncio.ensure_future(supervisor.run())
    template, *_ = await wait_started(supervisor)
    await broker.enqueue(QUEUE, [Job("a", "hold", {"path": str(tmp_path / "a")})])
    await until((tmp_path / "a.began").exists)
    start, refused = subprocess.Popen, []

    def refuse(*given: object, **named: object) -> None:
        refused.append(given)
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    loop = asyncio.get_running_loop()
    loop.call_soon(supervisor._reload)  # as the signal does
    await until(lambda: "the version before goes on" in caplog.text)
    descriptors = sorted(Path("/proc/self/fd").iterdir())
    loop.call_soon(supervisor._reload)
    await until(lambda: len(refused) == 2)
    assert sorted(Path("/proc/self/fd").iterdir()) == descriptors
    (tmp_path / "a.go").touch()
    assert await end_of(broker, "a") is JobState.SUCCEEDED

    os.kill(template, signal.SIGKILL)
    await until(lambda: len(refused) > 3)
    monkeypatch.setattr(subprocess, "Popen", start)
    await broker.enqueue(QUEUE, [Job("b", "add", {"a": 1, "b": 2})])
    assert await end_of(broker, "b") is JobState.SUCCEEDED

    supervisor.stop.ask("the test")
    await asyncio.wait_for(running, 20)


async def test_jobs_that_wait_are_looked_at_again_by_another_version(broker: MemoryBroker) -> None:
    supervisor = await make(broker)
    (consumer,) = supervisor._consumers
    job = held("a", task="not_in_it")
    consumer.held[job.id] = job
    consumer.lines[job.line].append(job)

    supervisor._keeper.on_reloaded()

    assert job.outcome is not None
    assert job.outcome.kind is OutcomeKind.RELEASE
    assert not consumer.lines[job.line]
