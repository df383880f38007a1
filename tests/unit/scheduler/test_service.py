"""The service: loops, nudges, orderly end. On the real clock, waiting for conditions."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tests.support.logs import lines
from tests.support.waiting import until
from tests.unit.scheduler.rig import QUEUE, FlakyBroker, make_spec
from tidework.broker.broker import Broker
from tidework.errors import (
    BrokerError,
    BrokerFullError,
    BrokerRefusedError,
    BrokerUnavailableError,
)
from tidework.maintenance.upkeep import Upkeep
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.schedules.schedule import Every
from tidework.scheduler.due import FireRules
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.service import SchedulerService, run_scheduler
from tidework.scheduler.spec import CronSpec
from tidework.testing.memory.broker import MemoryBroker

OTHER = QueueName("shop", "reports")


def secondly(uid: str = "digest", queue: QueueName = QUEUE) -> CronSpec:
    return make_spec(
        uid=uid,
        queue=queue,
        created=datetime.now(UTC),
        rules=FireRules(Every(timedelta(seconds=1))),
    )


def service_on(broker: object, *specs: CronSpec, holder: str = "a") -> SchedulerService:
    return SchedulerService(
        cast("Broker", broker), CronRegistry(specs), keeper=Upkeep, holder=holder
    )


async def test_it_fires_keeps_and_resigns() -> None:
    memory = MemoryBroker()
    service = service_on(memory, secondly())
    await memory.enqueue(
        QUEUE, [Job("later", "t", {}, available_at=datetime.now(UTC).timestamp() + 0.5)]
    )

    async with asyncio.TaskGroup() as group:
        group.create_task(service.run())
        await until(lambda: _fired(memory))
        await until(lambda: _is_ready(memory, "later"))
        service.stop()

    assert await memory.lead(QUEUE, "b", timedelta(seconds=1)) == 2


async def test_replacing_the_documents_is_acted_on_at_once() -> None:
    memory = MemoryBroker()
    service = service_on(memory)

    async with asyncio.TaskGroup() as group:
        group.create_task(service.run())
        await asyncio.sleep(0)
        service.replace([secondly("new", OTHER)], [QUEUE])
        await until(lambda: _fired(memory, OTHER))
        await until(lambda: _leads(service, QUEUE))
        service.stop()


async def test_cancelling_it_resigns_too() -> None:
    memory = MemoryBroker()
    service = service_on(memory, secondly())
    running = asyncio.create_task(service.run())
    await until(lambda: _leads(service, QUEUE))

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert await memory.lead(QUEUE, "b", timedelta(seconds=1)) == 2


async def test_it_outlives_a_redis_that_is_away() -> None:
    memory = MemoryBroker()
    flaky = FlakyBroker(memory)
    service = service_on(flaky, secondly())

    async with asyncio.TaskGroup() as group:
        group.create_task(service.run())
        await until(lambda: _leads(service, QUEUE))
        flaky.away = True
        await until(lambda: _failed(service))
        flaky.away = False
        await until(lambda: _fired(memory))
        service.stop()


async def test_it_ends_loudly_if_a_part_of_it_breaks() -> None:
    memory = MemoryBroker()
    service = service_on(memory, secondly())

    async def broken(_queue: QueueName) -> None:
        raise RuntimeError("a defect")

    memory.upkeep = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(ExceptionGroup) as ended:
        async with asyncio.timeout(20):
            await service.run()

    assert ended.group_contains(RuntimeError, match="a defect")


async def test_the_program_ends_in_order_at_sigterm() -> None:
    memory = MemoryBroker()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_scheduler(memory, [secondly()], keeper=Upkeep))
        await until(lambda: _fired(memory))
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(20):
            await running

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert await memory.lead(QUEUE, "b", timedelta(seconds=1)) == 2


async def test_a_program_that_starts_before_redis_waits_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    flaky = FlakyBroker(memory := MemoryBroker())
    flaky.away = True

    async with asyncio.TaskGroup() as group:
        broker = cast("Broker", flaky)
        running = group.create_task(run_scheduler(broker, [secondly()], keeper=Upkeep))
        await until(lambda: lines(caplog, "queue_not_opened"))
        flaky.away = False
        await until(lambda: _fired(memory))
        assert lines(caplog, "queue_opened")
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(20):
            await running


@pytest.mark.parametrize("error", [BrokerUnavailableError("away"), BrokerFullError("full")])
async def test_a_program_that_waits_for_redis_ends_at_sigterm(
    caplog: pytest.LogCaptureFixture, error: BrokerError
) -> None:
    memory = MemoryBroker()

    async def fail(_queue: QueueName) -> None:
        raise error

    memory.open_queue = fail  # type: ignore[method-assign,assignment]
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        running = group.create_task(run_scheduler(memory, [secondly()], keeper=Upkeep))
        await until(lambda: lines(caplog, "queue_not_opened"))
        os.kill(os.getpid(), signal.SIGTERM)
        await running

    assert str(error) in caplog.text
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_the_program_says_at_its_start_that_redis_refuses_it() -> None:
    memory = MemoryBroker()

    async def refuse(_queue: QueueName) -> None:
        raise BrokerRefusedError("NOAUTH")

    memory.open_queue = refuse  # type: ignore[method-assign,assignment]
    with pytest.raises(BrokerRefusedError):
        await run_scheduler(memory, [secondly()], keeper=Upkeep)


async def _fired(memory: MemoryBroker, queue: QueueName = QUEUE) -> bool:
    ids = (await memory.list_jobs(queue, JobState.READY)).ids
    return any("-1" in job_id for job_id in ids)


async def _is_ready(memory: MemoryBroker, job_id: str) -> bool:
    return job_id in (await memory.list_jobs(QUEUE, JobState.READY)).ids


async def _leads(service: SchedulerService, queue: QueueName) -> bool:
    return service.leadership.term(queue) is not None


async def _failed(service: SchedulerService) -> bool:
    return service.scheduler.counters.failed_rounds > 0
