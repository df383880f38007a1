"""Who leads a queue without a cluster, and what a lost term does."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from tests.support.logs import events, lines
from tests.unit.scheduler.rig import QUEUE, START, FlakyBroker
from tidework.broker.broker import Broker
from tidework.clock import ManualClock
from tidework.errors import BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.scheduler.leadership import QueueLeadership
from tidework.testing.memory.broker import MemoryBroker

OTHER = QueueName("shop", "reports")


class Room:
    """A clock, a broker, and the leaderships on it."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.memory = MemoryBroker(self.clock)
        self.flaky = FlakyBroker(self.memory)
        self.queues = {QUEUE}

    def leadership(
        self, holder: str, on_change: Callable[[], None] = lambda: None
    ) -> QueueLeadership:
        broker = cast("Broker", self.flaky)
        return QueueLeadership(broker, lambda: self.queues, holder, on_change=on_change)


async def test_the_first_leads_and_the_second_stands_by() -> None:
    room = Room()
    first, second = room.leadership("a"), room.leadership("b")
    for _ in range(10):
        await first.tick()
        room.clock.advance(await second.tick())

    assert first.term(QUEUE) == 1
    assert second.term(QUEUE) is None
    assert first.led == {QUEUE}
    assert second.led == frozenset()


async def test_who_is_silent_longer_than_the_ttl_is_followed_under_a_higher_term() -> None:
    room = Room()
    first, second = room.leadership("a"), room.leadership("b")
    await first.tick()
    room.clock.advance(timedelta(seconds=6))

    await second.tick()
    assert second.term(QUEUE) == 2
    await first.tick()

    assert first.term(QUEUE) is None


async def test_each_queue_is_led_for_itself() -> None:
    room = Room()
    room.queues = {QUEUE, OTHER}
    await room.memory.lead(OTHER, "someone", timedelta(seconds=60))
    leadership = room.leadership("a")

    await leadership.tick()

    assert leadership.led == {QUEUE}


async def test_a_queue_that_left_is_given_up_for_others() -> None:
    room = Room()
    leadership = room.leadership("a")
    await leadership.tick()

    room.queues = set()
    await leadership.tick()

    assert leadership.led == frozenset()
    assert await room.memory.lead(QUEUE, "b", timedelta(seconds=1)) == 2


async def test_resigning_lets_another_lead_at_once() -> None:
    room = Room()
    first, second = room.leadership("a"), room.leadership("b")
    await first.tick()

    await first.resign()
    await second.tick()

    assert (first.term(QUEUE), second.term(QUEUE)) == (None, 2)


async def test_resigning_takes_nothing_from_another() -> None:
    room = Room()
    first, second, third = (room.leadership(name) for name in "abc")
    await first.tick()
    room.clock.advance(timedelta(seconds=6))
    await second.tick()

    await first.resign()
    await third.tick()

    assert third.term(QUEUE) is None


async def test_a_refused_term_is_dropped_and_a_newer_one_kept() -> None:
    room = Room()
    changes: list[str] = []
    leadership = room.leadership("a", lambda: changes.append("change"))
    await leadership.tick()
    leadership.refuse(QUEUE, 7)
    assert leadership.term(QUEUE) == 1

    leadership.refuse(QUEUE, 1)

    assert leadership.term(QUEUE) is None
    assert changes == ["change", "change"]


async def test_a_redis_that_is_away_takes_no_term_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room()
    leadership = room.leadership("a")
    await leadership.tick()
    room.flaky.away = True
    for _ in range(5):
        await leadership.tick()
    assert leadership.term(QUEUE) == 1
    assert len(lines(caplog, "lead_not_renewed")) == 1

    room.flaky.away = False
    await leadership.tick()
    assert leadership.term(QUEUE) == 1


async def test_a_lost_reply_to_becoming_leader_changes_nothing() -> None:
    room = Room()
    leadership = room.leadership("a")
    room.flaky.fail("lead", "silent")
    await leadership.tick()
    assert leadership.term(QUEUE) is None

    await leadership.tick()

    assert leadership.term(QUEUE) == 1


async def test_resigning_while_redis_is_away_is_said() -> None:
    room = Room()
    leadership = room.leadership("a")
    await leadership.tick()
    room.flaky.away = True

    with pytest.raises(BrokerUnavailableError):
        await leadership.resign()

    assert leadership.led == frozenset()


async def test_winning_and_losing_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    first, second = room.leadership("a"), room.leadership("b")
    with caplog.at_level(logging.INFO):
        await first.tick()
        room.clock.advance(timedelta(seconds=6))
        await second.tick()
        await first.tick()
        await first.tick()

    assert events(caplog) == ["queue_led", "queue_led", "lead_lost"]
