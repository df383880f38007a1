"""The server's clock was a day ahead and comes back: what was said meanwhile waits no day longer.

What was said by an instant is what it says, and so is what was said before the clock went wrong.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.property.broker_machine_clock import ClockedBroker
from tests.support.fixtures import redis_url, valkey
from tidework.broker.answers import CordonAnswer, OnceAnswer
from tidework.broker.broker import Broker
from tidework.broker.connection.transport import AsyncTransport
from tidework.broker.keys import queue_key
from tidework.broker.redis.redis_broker import connect
from tidework.clock import ManualClock
from tidework.model.backlog import Cordon, Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import (
    ClaimedJob,
    ExchangeRequest,
    Lease,
    QueueLimits,
    Settlement,
)
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import Unique, UniqueUntil
from tidework.testing.memory.broker import MemoryBroker

__all__ = ["redis_url", "valkey"]

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
LIMITS = QueueLimits(keep_count=3)


class Queue:
    """A queue whose clock is set by the test, under the eyes of a leader unless it says not."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock(START)
        self.name = QueueName(f"t-{secrets.token_hex(6)}", "q")
        self.broker: Broker = (
            ClockedBroker(AsyncTransport(url), LIMITS, self.clock)
            if url
            else MemoryBroker(self.clock, LIMITS)
        )
        self._sequence = 0

    async def run_ahead(self) -> None:
        """From now on the clock is a day ahead."""
        self.clock.advance(DAY)
        await self.live()

    async def come_back(self) -> None:
        """It is right again."""
        self.clock.jump(-DAY)
        await self.live()

    async def live(self, span: timedelta = 5 * SECOND) -> None:
        """Upkeep once a second."""
        await self.broker.upkeep(self.name)
        for _ in range(span // SECOND):
            self.clock.advance(SECOND)
            await self.broker.upkeep(self.name)

    async def put(self, *jobs: Job) -> tuple[bool, ...]:
        return tuple(found.inserted for found in await self.broker.enqueue(self.name, jobs))

    async def work(self, *settlements: Settlement, want: int = 0) -> list[ClaimedJob]:
        self._sequence += 1
        request = ExchangeRequest("w", self._sequence, want, settlements)
        return list((await self.broker.exchange(self.name, request)).claimed)

    async def claim(self, name: str) -> ClaimedJob:
        (found,) = await self.work(want=1)
        assert found.id == name
        return found

    async def end(self, job: ClaimedJob, outcome: Outcome) -> None:
        await self.work(Settlement(job.id, job.token, outcome))

    async def state(self, name: str) -> JobState | None:
        found = await self.broker.get_job(self.name, name)
        return None if found is None else found.state

    async def due_in(self, name: str) -> float:
        """Seconds."""
        found = await self.broker.get_job(self.name, name)
        assert found is not None
        assert found.available_at is not None
        return (found.available_at - self.clock.now()).total_seconds()


@pytest.fixture(params=["memory", "valkey"])
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[Queue]:
    url = "" if request.param == "memory" else request.getfixturevalue("valkey").url
    found = Queue(url)
    await found.broker.open_queue(found.name)
    await found.live()
    yield found
    await found.broker.close()


FAILED = JobError("E", "m")


async def test_a_retry_waits_as_long_as_it_was_to(queue: Queue) -> None:
    await queue.run_ahead()
    await queue.put(Job("retried", "t", {}))
    await queue.end(await queue.claim("retried"), Outcome.retry(FAILED, 60 * SECOND))

    await queue.come_back()
    assert 40 <= await queue.due_in("retried") <= 60
    await queue.live(60 * SECOND)
    await queue.claim("retried")


async def test_so_does_one_that_is_given_back_or_has_a_delay(queue: Queue) -> None:
    await queue.run_ahead()
    await queue.put(Job("given-back", "t", {}))
    await queue.end(await queue.claim("given-back"), Outcome.release(60 * SECOND, "r"))
    await queue.put(Job("delayed", "t", {}, delay=60))
    await queue.put(Job("both", "t", {}, delay=60, unique=Unique("k")))

    await queue.come_back()
    for name in ("given-back", "delayed", "both"):
        assert 40 <= await queue.due_in(name) <= 60, name
    await queue.live(60 * SECOND)
    assert len(await queue.work(want=3)) == 3


async def test_though_nobody_kept_the_queue_meanwhile(queue: Queue) -> None:
    queue.clock.advance(DAY)
    await queue.put(Job("delayed", "t", {}, delay=60))
    queue.clock.jump(-DAY)

    await queue.live(SECOND)
    assert 50 <= await queue.due_in("delayed") <= 60


async def test_an_instant_is_what_it_says(queue: Queue) -> None:
    at = START + timedelta(hours=30)
    await queue.run_ahead()
    await queue.put(Job("at", "t", {}, available_at=at.timestamp()))
    await queue.put(Job("at-unique", "t", {}, available_at=at.timestamp(), unique=Unique("k")))

    await queue.come_back()
    for name in ("at", "at-unique"):
        assert await queue.due_in(name) == (at - queue.clock.now()).total_seconds()


async def test_what_was_said_before_the_clock_went_wrong_is_right_again(queue: Queue) -> None:
    await queue.put(Job("delayed", "t", {}, delay=timedelta(days=3).total_seconds()))
    before = await queue.due_in("delayed")
    await queue.run_ahead()
    await queue.come_back()

    assert await queue.due_in("delayed") == before - 10


async def test_it_may_go_wrong_more_than_once(queue: Queue) -> None:
    for name in ("one", "two"):
        await queue.run_ahead()
        await queue.put(Job(name, "t", {}, delay=600))
        await queue.come_back()
    assert await queue.state("one") is JobState.READY, "it was due by the clock that was ahead"
    assert (await queue.broker.stats(queue.name)).oldest_age < 60
    assert 550 <= await queue.due_in("two") <= 600


async def test_ready_jobs_keep_their_turn(queue: Queue) -> None:
    await queue.run_ahead()
    await queue.put(Job("first", "t", {}), Job("first-unique", "t", {}, unique=Unique("k")))
    await queue.come_back()
    await queue.put(Job("later", "t", {}))

    claimed = await queue.work(want=3)
    assert [found.id for found in claimed] == ["first", "first-unique", "later"]


@pytest.mark.parametrize(
    ("outcome", "pause"),
    [(Outcome.release(0 * SECOND, "r"), 0 * SECOND), (Outcome.loss(FAILED), 2 * SECOND)],
)
async def test_a_job_that_comes_back_after_the_clock_did_is_ready(
    queue: Queue, outcome: Outcome, pause: timedelta
) -> None:
    await queue.run_ahead()
    await queue.put(Job("given-back", "t", {}))
    claimed = await queue.claim("given-back")
    await queue.come_back()
    await queue.end(claimed, outcome)
    await queue.live(pause)

    await queue.claim("given-back")


async def test_what_ended_meanwhile_takes_no_later_ends_place(queue: Queue) -> None:
    await queue.run_ahead()
    for name in ("a", "b", "c"):
        await queue.put(Job(name, "t", {}))
        await queue.end(await queue.claim(name), Outcome.bury(FAILED))
    await queue.come_back()
    await queue.put(Job("d", "t", {}))
    await queue.end(await queue.claim("d"), Outcome.bury(FAILED))
    await queue.live()

    assert await queue.state("d") is JobState.DEAD
    assert await queue.state("a") is None, "the oldest had to go"
    page = await queue.broker.list_jobs(queue.name, JobState.DEAD)
    assert page.ids == ("d", "c", "b")
    (group,) = await queue.broker.list_errors(queue.name)
    assert group.count == 3
    assert group.last_at <= queue.clock.now()


async def test_an_id_is_known_no_longer_than_it_was_to_be(queue: Queue) -> None:
    await queue.run_ahead()
    await queue.put(Job("mine", "t", {}))
    await queue.end(await queue.claim("mine"), Outcome.complete(b""))
    await queue.broker.purge(queue.name, ["mine"])
    await queue.come_back()
    assert await queue.put(Job("mine", "t", {})) == (False,)

    await queue.live(610 * SECOND)
    await queue.live(610 * SECOND)
    assert await queue.put(Job("mine", "t", {})) == (True,)


async def test_a_key_is_held_as_long_as_it_was_to_be(queue: Queue) -> None:
    unique = Unique("k", until=UniqueUntil.TTL, ttl=60)
    long = Unique("long", until=UniqueUntil.TTL, ttl=timedelta(days=3).total_seconds())
    await queue.put(Job("long", "t", {}, unique=long))
    await queue.run_ahead()
    await queue.put(Job("one", "t", {}, unique=unique))
    await queue.come_back()
    assert await queue.put(Job("two", "t", {}, unique=unique)) == (False,)

    await queue.live(60 * SECOND)
    assert await queue.put(Job("three", "t", {}, unique=unique)) == (True,)
    queue.clock.advance(2 * DAY)
    await queue.live()
    assert await queue.put(Job("four", "t", {}, unique=long)) == (False,)


async def test_a_block_counts_as_done_as_long_as_it_was_to(queue: Queue) -> None:
    await queue.run_ahead()
    await queue.put(Job("one", "t", {}))
    claimed = await queue.claim("one")
    lease = Lease(claimed.id, claimed.token)
    await queue.broker.once_begin(queue.name, lease, "block")
    await queue.broker.once_end(queue.name, lease, "block", ttl=60 * SECOND)
    await queue.end(claimed, Outcome.complete(b""))
    await queue.come_back()
    await queue.put(Job("two", "t", {}))
    claimed = await queue.claim("two")
    lease = Lease(claimed.id, claimed.token)

    assert await queue.broker.once_begin(queue.name, lease, "block") is OnceAnswer.DONE
    for _ in range(16):
        await queue.broker.renew(queue.name, "w", [(lease.job_id, lease.token)])
        await queue.live(4 * SECOND)
    assert await queue.broker.once_begin(queue.name, lease, "block") is OnceAnswer.FIRST


async def test_a_worker_that_died_meanwhile_is_forgotten_in_time(queue: Queue) -> None:
    await queue.run_ahead()
    beat = Presence("gone", queue.clock.now(), {})
    await queue.broker.beat(queue.name, beat, ttl=LIMITS.keep_presence)
    await queue.broker.cordon(queue.name, "gone")
    await queue.come_back()
    (found,) = await queue.broker.workers(queue.name)
    assert found.silent_for >= 4 * SECOND

    await queue.live(LIMITS.keep_presence)
    assert await queue.broker.workers(queue.name) == ()


async def test_a_cordon_of_an_autoscaler_that_died_meanwhile_ends(queue: Queue) -> None:
    term = await queue.broker.take_term(queue.name)
    await queue.run_ahead()
    for name in ("w", "x"):
        beat = Presence(name, queue.clock.now(), {})
        await queue.broker.beat(queue.name, beat, ttl=LIMITS.keep_presence)
    assert await queue.broker.cordon(queue.name, "x") == CordonAnswer(0, before=False)
    await queue.broker.drain(queue.name, term, ["w", "x"], 2, ttl=60 * SECOND)
    await queue.come_back()
    await queue.live(60 * SECOND)

    kept = {found.incarnation: found.cordon for found in await queue.broker.workers(queue.name)}
    assert kept == {"w": Cordon.NOBODY, "x": Cordon.PERSON}


@pytest.mark.leaves_keys("", "the rest of what somebody else deleted")
@pytest.mark.parametrize("part", ["scheduled", "unique_ttls", "jobs", "records"])
async def test_what_somebody_else_deleted_stops_nothing(valkey_url: str, part: str) -> None:
    queue = Queue(valkey_url)
    await queue.broker.open_queue(queue.name)
    await queue.run_ahead()
    await queue.put(Job("ended", "t", {}))
    await queue.end(await queue.claim("ended"), Outcome.bury(FAILED))
    unique = Unique("k", until=UniqueUntil.TTL, ttl=60)
    await queue.put(Job("delayed", "t", {}, delay=60), Job("unique", "t", {}, unique=unique))
    assert isinstance(queue.broker, ClockedBroker)
    await queue.broker.transport.command("DEL", queue_key(queue.name, part))
    queue.clock.jump(-DAY)

    await queue.broker.renew(queue.name, "w", [])
    await queue.put(Job("later", "t", {}))
    assert "later" in [found.id for found in await queue.work(want=9)]
    await queue.broker.close()


async def test_a_leader_that_died_meanwhile_is_followed_by_another(valkey_url: str) -> None:
    """The expiry of a key is the server's own, and it moves with its clock."""
    broker, name = connect(valkey_url), QueueName(f"t-{secrets.token_hex(6)}", "q")
    ttl = 10 * SECOND
    assert await broker.lead(name, "gone", ttl) == 1
    await broker.transport.command("PEXPIRE", queue_key(name, "leader"), DAY // SECOND * 1000)

    assert await broker.lead(name, "next", ttl) is None
    left = await broker.transport.command("PTTL", queue_key(name, "leader"))
    assert 0 < left <= 20_000
    assert await broker.lead(name, "gone", ttl) == 1, "it was alive"
    await broker.close()


@pytest.fixture
def valkey_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue("valkey").url
    return url
