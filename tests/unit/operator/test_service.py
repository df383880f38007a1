"""The whole operator in one process: a server on the loopback, kopf, and a broker in memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_server import ApiServer, refusal
from tests.support.fake_cluster import FakeCluster
from tests.support.waiting import until
from tidework.clock import SystemClock
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.cluster import Kind, Object
from tidework_operator.patience import Patience
from tidework_operator.service import LEADER_MARKER, FreshTerms, OperatorService
from tidework_operator.settings import OperatorSettings

pytestmark = pytest.mark.thorough

QUEUE = QueueName("shop", "emails")


def taskqueue(**spec: Any) -> Object:
    return {
        "metadata": {"namespace": "shop", "name": "emails"},
        "spec": {"app": "shop.tasks", "image": "shop:1", **spec},
    }


def crontask(name: str = "digest", **spec: Any) -> Object:
    return {
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"queue": "emails", "task": "send", "every": "1s", **spec},
    }


class Room:
    """One cluster and one Redis for any number of replicas."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.cluster = server.cluster
        self.memory = MemoryBroker()
        self.folder = folder
        self.patience = Patience(relist_soon=timedelta(seconds=0.5))

    def replica(self, identity: str) -> OperatorService:
        settings = OperatorSettings.load(
            identity=identity,
            connections=self.folder / "connections",
            redis_url="redis://127.0.0.1:1/0",
            lease_namespace="tidework",
            state_dir=self.folder,
        )
        service = OperatorService(
            settings, self.cluster, self.access, SystemClock(), patience=self.patience
        )
        service.connections.broker = self._broker  # type: ignore[method-assign]
        return service

    def _broker(self, name: str) -> MemoryBroker:
        assert name == "default"
        return self.memory

    async def access(self) -> dict[str, Any]:
        return {"server": self.server.url}

    @asynccontextmanager
    async def running(self, service: OperatorService) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(service.run())
            try:
                yield
            finally:
                service.stop()

    async def jobs(self) -> list[str]:
        page = await self.memory.list_jobs(QUEUE, JobState.READY, limit=1000)
        return list(page.ids)

    async def wait_for_a_fire(self) -> None:
        before = len(await self.jobs())

        async def look() -> bool:
            return len(await self.jobs()) > before

        await until(look, "a fire")

    def lease(self) -> dict[str, Any]:
        (found,) = self.cluster.objects(Kind.LEASE)
        spec: dict[str, Any] = found["spec"]
        return spec

    def status(self, kind: Kind, name: str) -> dict[str, Any]:
        found = next(o for o in self.cluster.objects(kind) if o["metadata"]["name"] == name)
        status: dict[str, Any] = found.get("status", {})
        return status


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with ApiServer(FakeCluster()) as server:
        yield Room(server, tmp_path)


async def test_an_api_server_that_goes_away_stops_no_fire(room: Room) -> None:
    room.cluster.put(Kind.TASK_QUEUE, taskqueue())
    room.cluster.put(Kind.CRON_TASK, crontask())
    service = room.replica("a")
    async with room.running(service):
        await room.wait_for_a_fire()

        async def refuse(_: Any) -> Any:
            return refusal(503, "away")

        room.cluster.away, room.server.respond = True, refuse
        room.server.end_watches()
        await room.wait_for_a_fire()
        await room.wait_for_a_fire()
        assert service.election.leading
        assert service.health.livez() == ""
        assert service.health.readyz() == ""

        room.cluster.away, room.server.respond = False, None
        room.cluster.put(Kind.CRON_TASK, crontask("new"))
        await until(lambda: service.registry.find("new"))


async def test_a_leader_that_restarts_meanwhile_fires_from_the_snapshot(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidework_operator.leadership.election.LEASE_DURATION", timedelta(seconds=1)
    )
    room.patience = replace(room.patience, first_list=timedelta(seconds=0.1))
    room.cluster.put(Kind.TASK_QUEUE, taskqueue())
    room.cluster.put(Kind.CRON_TASK, crontask())
    async with room.running(room.replica("a")):
        await room.wait_for_a_fire()
        # It ends like a process that is killed: nothing is given back.
        room.cluster.away = True
    (room.folder / LEADER_MARKER).write_text("a")

    again = room.replica("a")
    async with room.running(again):
        await room.wait_for_a_fire()
        assert not again.inventory.complete
        assert len(again.registry.specs) == 1

        room.cluster.away = False
        room.cluster.put(Kind.CRON_TASK, crontask("new"))
        await until(lambda: again.registry.find("new"))
        await room.wait_for_a_fire()
        assert again.election.is_confirmed


async def test_a_part_that_breaks_ends_the_whole_and_gives_the_lease_back(room: Room) -> None:
    service = room.replica("a")

    async def broken() -> timedelta:
        if service.election.leading:
            raise RuntimeError("a defect")
        return timedelta(seconds=0.05)

    service._fires._tick = broken
    with pytest.raises(ExceptionGroup) as ended:
        async with asyncio.timeout(20):
            await service.run()

    assert ended.group_contains(RuntimeError, match="a defect")
    assert "holderIdentity" not in room.lease()


async def test_it_serves_what_it_finds_and_what_comes(room: Room) -> None:
    room.cluster.put(Kind.TASK_QUEUE, taskqueue(minReplicas=1))
    service = room.replica("a")
    async with room.running(service):
        room.cluster.put(Kind.CRON_TASK, crontask())
        await room.wait_for_a_fire()
        await until(lambda: room.cluster.objects(Kind.DEPLOYMENT))
        await until(lambda: room.status(Kind.TASK_QUEUE, "emails").get("conditions"))
        await until(lambda: room.status(Kind.CRON_TASK, "digest").get("conditions"))

        numbers = service.health.metrics().decode()
        assert "tidework_operator_leader 1.0" in numbers
        assert re.search(r'fires_total\{verdict="enqueued"\} [1-9]', numbers)
        assert 'tidework_operator_objects{kind="TaskQueue"} 1.0' in numbers
        assert re.search(r'rounds_total\{loop="taskqueues"\} [1-9]', numbers)


async def test_a_crontask_that_is_deleted_fires_no_more(room: Room) -> None:
    room.cluster.put(Kind.TASK_QUEUE, taskqueue())
    room.cluster.put(Kind.CRON_TASK, crontask())
    service = room.replica("a")
    async with room.running(service):
        await room.wait_for_a_fire()

        room.cluster.remove(Kind.CRON_TASK, "shop", "digest")
        await until(lambda: not service.registry.specs)

        async def is_forgotten() -> bool:
            return not await room.memory.crontasks(QUEUE)

        await until(is_forgotten)


async def test_a_standby_is_ready_writes_nothing_and_takes_over_at_the_end_of_the_leader(
    room: Room,
) -> None:
    room.cluster.put(Kind.TASK_QUEUE, taskqueue())
    room.cluster.put(Kind.CRON_TASK, crontask())
    leader, standby = room.replica("a"), room.replica("b")
    async with room.running(standby), room.running(leader):
        await until(lambda: leader.election.leading or standby.election.leading)
        first, second = (leader, standby) if leader.election.leading else (standby, leader)
        await room.wait_for_a_fire()
        await until(lambda: second.health.readyz() == "")
        assert second.leadership.led == frozenset()
        assert second.leading["taskqueues"].rounds == 0

        first.stop()
        await until(lambda: second.leadership.led == {QUEUE})
        await room.wait_for_a_fire()
        assert await room.memory.take_term(QUEUE) == 3


async def test_the_end_is_orderly(room: Room) -> None:
    room.cluster.put(Kind.TASK_QUEUE, taskqueue())
    before = asyncio.all_tasks()
    service = room.replica("a")
    async with room.running(service):
        await until(lambda: service.leadership.led)
        await until(lambda: room.server.watching == 2)

    assert "holderIdentity" not in room.lease()
    assert service.health.readyz() == "stopping"
    left = asyncio.all_tasks() - before
    assert [t for t in left if "RequestHandler" not in str(t.get_coro())] == []
    assert not (room.folder / LEADER_MARKER).exists()


async def test_bounds_that_nobody_has_said_prune_nothing(room: Room) -> None:
    room.cluster.put(Kind.CRON_TASK, crontask())
    service = room.replica("a")
    async with room.running(service):
        await until(lambda: service.inventory.objects(Kind.CRON_TASK))
        service.leadership._terms[QUEUE] = 1
        assert service._queues_to_keep() == []


class SomeTerms:
    """Leads everything under term 7."""

    def __init__(self) -> None:
        self.refused: list[tuple[QueueName, int]] = []

    def term(self, queue: QueueName) -> int | None:
        return 7

    def refuse(self, queue: QueueName, term: int) -> None:
        self.refused.append((queue, term))


def test_nothing_fires_before_the_crontasks_were_read_in_this_lead() -> None:
    read = False
    terms = SomeTerms()
    fresh = FreshTerms(terms, lambda: read)
    assert fresh.term(QUEUE) is None

    read = True
    assert fresh.term(QUEUE) == 7
    fresh.refuse(QUEUE, 7)

    assert terms.refused == [(QUEUE, 7)]


async def test_what_was_read_in_an_earlier_lead_does_not_count(room: Room) -> None:
    service = room.replica("a")
    assert not service._knows_crontasks()
    await service.election.tick()
    await service._relist.tick()
    await service.leading["crontasks"].tick()
    assert service._knows_crontasks()

    await service.election.release()
    assert not service._knows_crontasks()
    await service.election.tick()

    assert not service._knows_crontasks()
    assert service.scheduler._terms.term(QUEUE) is None
