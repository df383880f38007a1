"""Terms: one per queue, raised at takeover, dropped when refused, never shared by two writers."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tests.support.fake_cluster import FakeCluster
from tests.support.logs import lines
from tests.unit.scheduler.rig import FlakyBroker
from tidework.broker.broker import Broker
from tidework.clock import ManualClock
from tidework.errors import BrokerUnavailableError, StaleTermError
from tidework.model.identity import QueueName
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.leadership import TROUBLE, ClusterLeadership, Election, WhileLeading
from tidework_operator.patience import USUAL, Patience

EMAILS, REPORTS = QueueName("shop", "emails"), QueueName("shop", "reports")


class Replica:
    """Election and terms of one process."""

    def __init__(self, room: Room, identity: str, patience: Patience = USUAL) -> None:
        self.changes = 0
        self.looks = 0
        self.election = Election(
            room.cluster, room.clock, namespace="tidework", name="operator", identity=identity
        )
        broker = cast("Broker", room.flaky)
        self.terms = ClusterLeadership(
            self.election,
            broker,
            lambda: room.queues,
            on_change=self._count_change,
            on_refuse=self._count_look,
            patience=patience,
        )

    def _count_change(self) -> None:
        self.changes += 1

    def _count_look(self) -> None:
        self.looks += 1

    async def tick(self) -> None:
        await self.election.tick()
        await self.terms.tick()


class Room:
    """One cluster, one Redis, one clock."""

    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, tzinfo=UTC))
        self.cluster = FakeCluster(self.clock)
        self.memory = MemoryBroker(self.clock)
        self.flaky = FlakyBroker(self.memory)
        self.queues = {EMAILS, REPORTS}

    async def pass_time(self, seconds: float, *replicas: Replica) -> None:
        for _ in range(int(seconds // 2)):
            self.clock.advance(timedelta(seconds=2))
            for replica in replicas:
                await replica.tick()

    async def write(self, replica: Replica, queue: QueueName = EMAILS) -> bool:
        """Write under the replica's term, as the scheduler does; False if it was refused."""
        term = replica.terms.term(queue)
        assert term is not None
        try:
            await self.memory.put_crontasks(queue, term, {})
        except StaleTermError:
            replica.terms.refuse(queue, term)
            return False
        return True


async def test_a_standby_has_no_term() -> None:
    room = Room()
    leader, standby = Replica(room, "a"), Replica(room, "b")
    await leader.tick()
    await standby.tick()

    assert leader.terms.led == {EMAILS, REPORTS}
    assert standby.terms.led == frozenset()
    assert standby.terms.term(EMAILS) is None
    assert await room.write(leader)


async def test_a_frozen_leader_is_refused_and_gives_way() -> None:
    room = Room()
    frozen, second = Replica(room, "a"), Replica(room, "b")
    await frozen.tick()
    await second.tick()
    await room.pass_time(20, second)
    assert frozen.terms.term(EMAILS) == 1

    assert not await room.write(frozen)
    assert frozen.terms.term(EMAILS) is None
    assert frozen.looks == 1
    await frozen.tick()

    assert not frozen.election.leading
    assert frozen.terms.led == frozenset()
    assert second.terms.term(EMAILS) == 2
    assert await room.write(second)


async def test_who_cannot_see_the_lease_takes_no_refused_term_back() -> None:
    room = Room()
    cut_off, second = Replica(room, "a"), Replica(room, "b")
    await cut_off.tick()
    await second.tick()
    await room.pass_time(20, second)

    room.cluster.away = True
    await room.pass_time(4, cut_off, second)
    assert not await room.write(cut_off)
    await room.pass_time(30, cut_off, second)

    assert cut_off.election.leading  # as far as it knows
    assert cut_off.terms.term(EMAILS) is None
    assert await room.write(second)


async def test_a_refused_term_is_raised_again_once_the_lead_is_confirmed() -> None:
    room = Room()
    leader = Replica(room, "a")
    await leader.tick()
    await room.memory.take_term(EMAILS)  # somebody, without a Lease

    assert not await room.write(leader)
    await leader.terms.tick()
    assert leader.terms.term(EMAILS) is None
    await leader.tick()

    assert leader.terms.term(EMAILS) == 3
    assert leader.terms.term(REPORTS) == 1


async def test_refusing_a_term_that_is_not_held_any_more_changes_nothing() -> None:
    room = Room()
    leader = Replica(room, "a")
    await leader.tick()

    leader.terms.refuse(EMAILS, 77)

    assert leader.terms.term(EMAILS) == 1
    assert leader.terms.refusals == 1


async def test_a_queue_whose_term_cannot_be_raised_keeps_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room()
    leader = Replica(room, "a")
    room.flaky.fail("take_term", "lost", "", "lost", "lost")
    await leader.tick()
    assert len(leader.terms.led) == 1

    await leader.terms.tick()
    await leader.terms.tick()
    await leader.terms.tick()

    assert leader.terms.led == {EMAILS, REPORTS}
    assert len(lines(caplog, "queue_not_led")) == 1


async def test_a_redis_that_hangs_is_not_waited_for() -> None:
    room = Room()
    leader = Replica(room, "a", Patience(raise_term=timedelta(seconds=0.05)))
    await leader.election.tick()
    room.flaky.hold("open_queue")

    await leader.terms.tick()

    assert EMAILS not in leader.terms.led
    await leader.terms.tick()
    assert leader.terms.led == {EMAILS, REPORTS}


async def test_a_lost_reply_raises_it_once_more() -> None:
    room = Room()
    room.queues = {EMAILS}
    leader = Replica(room, "a")
    room.flaky.fail("take_term", "silent")
    await leader.tick()
    assert leader.terms.term(EMAILS) is None

    await leader.terms.tick()

    assert leader.terms.term(EMAILS) == 2
    assert await room.write(leader)


async def test_a_lead_lost_while_a_term_is_raised_gives_none() -> None:
    room = Room()
    room.queues = {EMAILS}
    leader = Replica(room, "a")
    await leader.election.tick()
    real = room.memory.take_term

    async def overtaken(queue: QueueName) -> int:
        await leader.election.release()
        return await real(queue)

    room.memory.take_term = overtaken  # type: ignore[method-assign]
    await leader.terms.tick()

    assert leader.terms.led == frozenset()
    assert leader.changes == 0


async def test_a_new_lead_raises_all_terms_anew() -> None:
    room = Room()
    first, second = Replica(room, "a"), Replica(room, "b")
    await first.tick()
    await first.election.release()
    await second.tick()
    await second.election.release()

    await first.election.tick()
    assert first.terms.term(EMAILS) is None  # not the one of its earlier lead
    await first.terms.tick()

    assert first.terms.term(EMAILS) == 3


async def test_queues_come_and_go() -> None:
    room = Room()
    room.queues = {EMAILS}
    leader = Replica(room, "a")
    await leader.tick()
    assert leader.changes == 1

    room.queues = {REPORTS}
    await leader.terms.tick()

    assert leader.terms.led == {REPORTS}
    assert REPORTS in await room.memory.queues()


async def test_a_queue_that_moved_to_another_redis_gets_another_term() -> None:
    room = Room()
    leader = Replica(room, "a")
    await leader.tick()

    leader.terms.forget(EMAILS)
    assert leader.terms.term(EMAILS) is None
    await leader.terms.tick()

    assert leader.terms.term(EMAILS) == 2


class Part:
    """A part that counts; raises what it is told to."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.fails: Exception | None = None

    async def tick(self) -> timedelta:
        if self.fails is not None:
            raise self.fails
        return timedelta(seconds=30)


async def test_a_part_runs_while_leading_and_is_made_anew_with_each_lead() -> None:
    room = Room()
    Part.made = 0
    replica, other = Replica(room, "a"), Replica(room, "b")
    part = WhileLeading(replica.election, room.clock, Part, is_ready=lambda: True)
    await part.tick()
    assert Part.made == 0
    assert not part.is_fresh

    await replica.tick()
    assert await part.tick() == timedelta(seconds=30)
    assert part.is_fresh
    await replica.election.release()
    assert not part.is_fresh
    await other.tick()
    await other.election.release()
    await replica.tick()
    assert not part.is_fresh
    room.clock.advance(timedelta(seconds=1))
    await part.tick()

    assert Part.made == 2
    assert (part.rounds, part.is_fresh) == (2, True)


async def test_a_part_waits_until_all_is_known() -> None:
    room = Room()
    Part.made = 0
    ready = False
    replica = Replica(room, "a")
    await replica.tick()
    part = WhileLeading(replica.election, room.clock, Part, is_ready=lambda: ready)
    await part.tick()
    assert Part.made == 0

    ready = True
    await part.tick()

    assert Part.made == 1


async def test_nudges_leave_a_gap_between_rounds() -> None:
    room = Room()
    replica = Replica(room, "a")
    await replica.tick()
    part = WhileLeading(
        replica.election, room.clock, Part, is_ready=lambda: True, gap=timedelta(seconds=2)
    )
    await part.tick()

    room.clock.advance(timedelta(seconds=0.5))
    assert await part.tick() == timedelta(seconds=1.5)
    assert part.rounds == 1
    room.clock.advance(timedelta(seconds=1.5))
    await part.tick()

    assert part.rounds == 2


async def test_trouble_is_counted_and_handed_on(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    replica = Replica(room, "a")
    await replica.tick()
    made = Part()
    made.fails = BrokerUnavailableError("away")
    part = WhileLeading(replica.election, room.clock, lambda: made, is_ready=lambda: True)

    with caplog.at_level(logging.WARNING), pytest.raises(TROUBLE):
        await part.tick()

    assert (part.rounds, part.failures, part.is_fresh) == (0, 1, False)
