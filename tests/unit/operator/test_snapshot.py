"""The snapshot: when it is taken, and what is left out rather than taken in part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.fake_cluster import FakeCluster
from tests.support.logs import lines
from tests.unit.scheduler.rig import FlakyBroker
from tidework.broker.broker import Broker
from tidework.clock import ManualClock
from tidework.manifests import CronTask, parse_document
from tidework.model.identity import QueueName
from tidework.scheduler.registry import CronRegistry
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.connections import Connections
from tidework_operator.inventory import KINDS, Inventory
from tidework_operator.leadership import Election
from tidework_operator.queues import KnownQueues
from tidework_operator.snapshot import Snapshot

EMAILS, REPORTS = QueueName("shop", "emails"), QueueName("lab", "reports")


def mirrored(queue: QueueName, name: str, **spec: object) -> bytes:
    document = parse_document(
        {
            "apiVersion": "tidework.dev/v1alpha1",
            "kind": "CronTask",
            "metadata": {"namespace": queue.namespace, "name": name, "uid": f"uid-{name}"},
            "spec": {"queue": queue.name, "task": "send", "schedule": "* * * * *", **spec},
        }
    )
    assert isinstance(document, CronTask)
    return document.model_dump_json(by_alias=True, exclude={"status"}).encode()


class BlindLeader:
    """A leader that has not seen the API server; two connections."""

    def __init__(self, folder: Path, namespaces: tuple[str, ...] = ()) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, tzinfo=UTC))
        self.memories = {"default": MemoryBroker(self.clock), "cache": MemoryBroker(self.clock)}
        self.flaky = {name: FlakyBroker(memory) for name, memory in self.memories.items()}
        self.inventory = Inventory()
        self.registry = CronRegistry()
        self.queues = KnownQueues(self.inventory)
        self.election = Election(
            FakeCluster(self.clock), self.clock, namespace="tidework", name="o", identity="a"
        )
        (folder / "cache").mkdir()
        connections = Connections(folder, "redis://127.0.0.1:1", self.queues.limits)
        connections.broker = self._broker  # type: ignore[method-assign]
        self.snapshot = Snapshot(
            self.election,
            self.inventory,
            connections,
            self.registry,
            self.clock,
            namespaces=namespaces,
            on_found=self.queues.note_connection,
        )

    def _broker(self, name: str) -> Broker:
        return self.flaky[name]  # type: ignore[return-value]

    async def mirror(self, connection: str, queue: QueueName, **documents: bytes) -> None:
        memory = self.memories[connection]
        await memory.open_queue(queue)
        await memory.put_crontasks(queue, 1, documents)

    async def wait(self) -> None:
        await self.snapshot.tick()
        self.clock.advance(timedelta(seconds=6))
        await self.snapshot.tick()

    def names(self) -> list[str]:
        return sorted(spec.name for spec in self.registry.specs.values())


@pytest.fixture
async def leader(tmp_path: Path) -> BlindLeader:
    leader = BlindLeader(tmp_path)
    await leader.mirror("default", EMAILS, a=mirrored(EMAILS, "a"), b=mirrored(EMAILS, "b"))
    await leader.mirror("cache", REPORTS, c=mirrored(REPORTS, "c"))
    return leader


async def test_a_standby_takes_none(leader: BlindLeader) -> None:
    await leader.wait()

    assert leader.names() == []
    assert not leader.snapshot.is_fresh


async def test_a_leader_that_was_told_everything_takes_none(leader: BlindLeader) -> None:
    await leader.election.tick()
    leader.inventory.finish_relist({kind: [] for kind in KINDS})

    await leader.wait()

    assert leader.names() == []


async def test_the_first_list_is_waited_for_a_moment(leader: BlindLeader) -> None:
    await leader.election.tick()
    await leader.snapshot.tick()
    leader.clock.advance(timedelta(seconds=4))
    await leader.snapshot.tick()
    assert leader.names() == []

    leader.clock.advance(timedelta(seconds=2))
    await leader.snapshot.tick()

    assert leader.names() == ["a", "b", "c"]
    assert leader.snapshot.is_fresh
    assert leader.queues.connection(REPORTS) == "cache"


async def test_a_queue_with_a_document_that_cannot_be_read_is_left_out_whole(
    leader: BlindLeader, caplog: pytest.LogCaptureFixture
) -> None:
    await leader.mirror("default", EMAILS, a=mirrored(EMAILS, "a"), z=b'{"kind": "CronTask"}')
    await leader.election.tick()

    await leader.wait()

    assert leader.names() == ["c"]
    assert EMAILS not in leader.registry.queues
    (line,) = lines(caplog, "snapshot_unreadable")
    assert (line["namespace"], line["queue"]) == ("shop", "emails")


@pytest.mark.parametrize("method", ["queues", "crontasks"])
async def test_a_redis_that_is_away_leaves_its_queues_out(leader: BlindLeader, method: str) -> None:
    leader.flaky["default"].fail(method, "lost")
    await leader.election.tick()

    await leader.wait()
    assert leader.names() == ["c"]

    leader.flaky["cache"].away = True
    await leader.snapshot.tick()

    assert leader.names() == ["a", "b", "c"]


async def test_other_namespaces_are_not_ours(tmp_path: Path) -> None:
    leader = BlindLeader(tmp_path, ("lab",))
    await leader.mirror("default", EMAILS, a=mirrored(EMAILS, "a"))
    await leader.mirror("cache", REPORTS, c=mirrored(REPORTS, "c"))
    await leader.election.tick()

    await leader.wait()

    assert leader.names() == ["c"]


async def test_it_is_taken_once_per_lead(leader: BlindLeader) -> None:
    await leader.election.tick()
    await leader.wait()
    version = leader.registry.version

    await leader.wait()
    assert leader.registry.version == version
    assert leader.flaky["default"].calls.count("crontasks") == 1
    await leader.election.release()
    assert not leader.snapshot.is_fresh
    await leader.election.tick()
    await leader.snapshot.tick()
    await leader.wait()

    assert leader.registry.version == version + 1


async def test_it_counts_no_more_once_everything_was_listed(leader: BlindLeader) -> None:
    await leader.election.tick()
    await leader.wait()

    leader.inventory.finish_relist({kind: [] for kind in KINDS})
    await leader.snapshot.tick()

    assert not leader.snapshot.is_fresh
