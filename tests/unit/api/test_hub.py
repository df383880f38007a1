"""The hub of live updates: one look for all, changes only, and nobody waits for the slow."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from pydantic import BaseModel

from tests.support.waiting import until
from tidework.api.events.hub import MOST_LISTENERS, MOST_LOST, MOST_WAITING, Event, Hub, Listener
from tidework.api.events.subjects import Subject, read_subject
from tidework.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    JobNotFoundError,
    TooManyListenersError,
)

QUEUES = Subject("default", "queues")
EMAILS = Subject("default", "queue", "emails")


class State(BaseModel):
    """What a look finds."""

    ready: int
    oldest_wait_seconds: float = 0.0


class World:
    """What is looked at, and how often."""

    def __init__(self) -> None:
        self.ready = 0
        self.waits = 0.0
        self.error: Exception | None = None
        self.looks: Counter[Subject] = Counter()
        self.hub = Hub(self.look, timedelta(milliseconds=2))

    async def look(self, subject: Subject) -> State:
        self.looks[subject] += 1
        if self.error is not None:
            raise self.error
        self.waits += 1
        return State(ready=self.ready, oldest_wait_seconds=self.waits)

    async def rounds(self, count: int, subject: Subject = QUEUES) -> None:
        """Wait for so many looks."""
        wanted = self.looks[subject] + count
        await until(lambda: self.looks[subject] >= wanted)


class Client:
    """Listens, and keeps what it was told."""

    def __init__(self, hub: Hub, listener: Listener, last_id: str | None = None) -> None:
        self.listener = listener
        self.hub = hub
        self._events = hub.events(listener, last_id)
        self.last = ""

    async def next(self) -> tuple[str, str]:
        event: Event = await anext(self._events)
        self.last = self.hub.id_of(event) or self.last
        return event.kind, event.data

    async def leave(self) -> None:
        await self._events.aclose()  # type: ignore[attr-defined]


async def client(world: World, *subjects: Subject, last_id: str | None = None) -> Client:
    listener = await world.hub.join(subjects or (QUEUES,))
    return Client(world.hub, listener, last_id)


async def test_a_client_is_told_how_it_is_and_what_changes() -> None:
    world = World()
    found = await client(world)
    assert (await found.next())[0] == "state"

    world.ready = 7

    kind, data = await found.next()
    assert (kind, State.model_validate_json(data).ready) == ("change", 7)
    await found.leave()


async def test_time_that_passes_is_no_news() -> None:
    world = World()
    found = await client(world)
    await found.next()
    await world.rounds(5)

    world.ready = 1

    assert State.model_validate_json((await found.next())[1]).ready == 1
    await found.leave()


async def test_one_look_serves_all_and_none_is_made_for_nobody() -> None:
    world = World()
    clients = [await client(world) for _ in range(50)]
    assert world.looks[QUEUES] == 1

    world.ready = 1
    for each in clients:
        assert [(await each.next())[0] for _ in range(2)] == ["state", "change"]
        await each.leave()

    seen = world.looks[QUEUES]
    again = await client(world)
    assert world.looks[QUEUES] <= seen + 3
    await again.leave()


async def test_a_client_that_comes_back_gets_what_it_missed() -> None:
    world = World()
    stays, goes = await client(world), await client(world)
    await stays.next()
    await goes.next()
    await goes.leave()
    for ready in (1, 2):
        world.ready = ready
        await stays.next()

    back = await client(world, last_id=goes.last)

    assert [await back.next() for _ in range(2)] == [
        ("change", State(ready=ready, oldest_wait_seconds=wait).model_dump_json())
        for ready, wait in [
            (1, State.model_validate_json(world.hub._kept[0].data).oldest_wait_seconds),
            (2, State.model_validate_json(world.hub._kept[1].data).oldest_wait_seconds),
        ]
    ]
    await back.leave()
    await stays.leave()


async def test_what_changed_while_nobody_listened_is_told_to_who_comes_back() -> None:
    world = World()
    elsewhere = await client(world, EMAILS)
    goes = await client(world)
    await goes.next()
    await goes.leave()
    world.ready = 2
    await world.rounds(3, EMAILS)

    back = await client(world, last_id=goes.last)

    kind, data = await back.next()
    assert (kind, State.model_validate_json(data).ready) == ("reset", 2)
    await back.leave()
    await elsewhere.leave()


async def test_who_is_cut_off_within_the_first_states_gets_them_all() -> None:
    world = World()
    stays = await client(world, QUEUES, EMAILS)
    goes = await client(world, QUEUES, EMAILS)
    assert ((await goes.next())[0], goes.last) == ("state", "")
    await goes.leave()

    back = await client(world, QUEUES, EMAILS, last_id=goes.last or None)

    assert [(await back.next())[0] for _ in range(2)] == ["state", "state"]
    assert back.last
    await back.leave()
    await stays.leave()


async def test_a_stream_begins_while_redis_is_away() -> None:
    world = World()
    world.error = BrokerUnavailableError("Redis cannot be reached")
    found = await client(world)
    assert (await found.next())[0] == "trouble"

    world.error = None

    assert (await found.next())[0] == "change"
    await found.leave()


async def test_who_comes_during_trouble_is_told_of_it() -> None:
    world = World()
    first = await client(world)
    await first.next()
    world.error = BrokerUnavailableError("Redis cannot be reached")
    await first.next()

    second = await client(world)

    assert [(await second.next())[0] for _ in range(2)] == ["state", "trouble"]
    await second.leave()
    await first.leave()


@pytest.mark.parametrize("last_id", ["", "other-1", "nonsense", "1", "-"])
async def test_a_client_of_another_server_starts_over(last_id: str) -> None:
    world = World()
    found = await client(world, last_id=last_id)

    assert (await found.next())[0] == ("reset" if last_id else "state")
    await found.leave()


async def test_a_slow_client_loses_events_and_gets_the_present() -> None:
    world = World()
    slow = await client(world)
    await slow.next()
    for ready in range(1, MOST_WAITING + 5):
        world.hub._tell("change", QUEUES, State(ready=ready).model_dump_json())
    world.hub._watched[QUEUES].data = State(ready=99).model_dump_json()

    kind, data = await slow.next()

    assert (kind, State.model_validate_json(data).ready) == ("reset", 99)
    await slow.leave()


async def test_a_client_that_reads_nothing_is_forgotten() -> None:
    world = World()
    await client(world)
    for _ in range(MOST_WAITING + MOST_LOST + 2):
        world.hub._tell("change", QUEUES, "{}")

    assert not world.hub._watched


async def test_trouble_is_told_once_and_so_is_its_end() -> None:
    world = World()
    found = await client(world)
    await found.next()
    world.error = BrokerUnavailableError("Redis cannot be reached")
    assert (await found.next())[0] == "trouble"
    await world.rounds(5)

    world.error = None
    world.ready = 3

    assert sorted([(await found.next())[0] for _ in range(2)]) == ["change", "recovered"]
    await found.leave()


async def test_what_goes_is_told_and_what_comes_back() -> None:
    world = World()
    found = await client(world)
    await found.next()
    world.error = JobNotFoundError("a", "emails")
    assert (await found.next())[0] == "gone"

    world.error = None

    assert (await found.next())[0] == "change"
    await found.leave()


async def test_who_asks_for_what_is_not_there_leaves_no_trace() -> None:
    world = World()
    world.error = JobNotFoundError("a", "emails")

    with pytest.raises(JobNotFoundError):
        await world.hub.join([QUEUES, EMAILS])

    assert not world.hub._watched


async def test_there_are_so_many_listeners_at_most() -> None:
    world = World()
    world.hub._listeners = [Listener(()) for _ in range(MOST_LISTENERS)]

    with pytest.raises(TooManyListenersError):
        await world.hub.join([QUEUES])


async def test_the_end_of_the_server_ends_every_stream() -> None:
    world = World()
    found = await client(world)
    await found.next()

    world.hub.close()

    with pytest.raises(StopAsyncIteration):
        await found.next()
    assert not world.hub._watched


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("queues", QUEUES),
        ("queue:emails", EMAILS),
        ("job:emails/a:1", Subject("default", "job", "emails", "a:1")),
        ("scaling:emails", Subject("default", "scaling", "emails")),
    ],
)
def test_a_subject_is_read_and_written(text: str, subject: Subject) -> None:
    assert read_subject("default", text) == subject
    assert str(subject) == text


@pytest.mark.parametrize(
    "text", ["", "quues", "queue", "queue:", "queues:a", "job:emails", "job:emails/ ", "queue:A"]
)
def test_a_subject_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        read_subject("default", text)
