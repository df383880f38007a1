"""Claims: who may claim how much, and whose turn it is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import Make, PoolBench
from tests.unit.worker.jobs import Source
from tidework.worker.held import JobSource
from tidework.worker.places.claims import Claims, Grant


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made = []

    def build(slots: int = 1, *, jobs: int = 1000, memory: int = 1 << 30) -> PoolBench:
        made.append(PoolBench(slots, jobs=jobs, memory=memory))
        made[-1].start()
        return made[-1]

    yield build
    for bench in made:
        bench.close()


class Room:
    """Places as a test says: ``free`` ones, and room for jobs ahead of ``most``."""

    def __init__(self, free: int = 0, ahead: int = 0, most: int = 0) -> None:
        self.free = free
        self.beyond = (ahead, most or ahead)
        self.taken: dict[JobSource, int] = {}

    def idle(self) -> int:
        return self.free

    def ahead(self) -> tuple[int, int]:
        return self.beyond

    def running(self, source: JobSource) -> int:
        return self.taken.get(source, 0)


def claims_of(room: Room, sources: int = 1) -> tuple[Claims, list[Source]]:
    found = [Source(index) for index in range(sources)]
    claims = Claims(room)
    for source in found:
        claims.add_source(source)
    return claims, found


async def test_room_to_claim_ahead_follows_the_service_time(make: Make) -> None:
    bench = make(2)
    assert bench.slot_places.ahead() == (0, 0)
    bench.pool.places.times.note("t", 0.01)

    assert bench.slot_places.ahead() == (10, 10)
    bench.source.add("a", "b", "c")
    bench.slot_places.turns.look()
    assert bench.slot_places.ahead() == (7, 10)


async def test_a_slot_whose_job_runs_long_gives_no_room(make: Make) -> None:
    bench = make()
    bench.pool.places.times.note("t", 0.01)
    bench.source.add("a")
    bench.slot_places.run()
    bench.begin(bench.orders.children[0], 1, ago=1)

    assert bench.slot_places.ahead() == (0, 0)


def test_idle_places_are_granted_once() -> None:
    claims, (source,) = claims_of(Room(3))

    grant = claims.reserve(source, ahead=True)

    assert grant == Grant(3, 3, due=True)
    assert claims.reserve(source, ahead=True).want == 0
    claims.close(grant)
    assert claims.reserve(source, ahead=True).want == 3


def test_a_place_is_left_for_whoever_was_granted_one_longer_ago() -> None:
    claims, (source, other) = claims_of(Room(1), sources=2)
    claims.close(claims.reserve(source, ahead=True))

    assert claims.reserve(source, ahead=True).want == 0, "it is the other's turn"
    grant = claims.reserve(other, ahead=True)
    assert grant.want == 1
    claims.close(grant)
    other.hungry = False
    assert claims.reserve(source, ahead=True).want == 1


def test_jobs_ahead_are_granted_in_turns_and_in_full() -> None:
    claims, (one, two) = claims_of(Room(ahead=64), sources=2)

    assert claims.reserve(one, ahead=True).want == 64
    assert claims.reserve(one, ahead=True).want == 0, "it is the other's turn"
    assert claims.reserve(two, ahead=False).want == 0
    assert claims.reserve(two, ahead=True).want == 64


@pytest.mark.parametrize(("ahead", "due"), [(31, False), (32, True)])
def test_little_room_ahead_is_worth_no_exchange_of_its_own(ahead: int, due: bool) -> None:
    claims, (source,) = claims_of(Room(ahead=ahead, most=64))

    assert claims.reserve(source, ahead=True) == Grant(ahead, 0, due=due)


def test_of_many_sources_one_is_offered_the_room() -> None:
    claims, sources = claims_of(Room(1), sources=5)
    sources[0].hungry = False

    claims.offer()
    assert [source.offers for source in sources] == [0, 1, 0, 0, 0]
    claims.close(claims.reserve(sources[1], ahead=True))
    claims.offer()

    assert [source.offers for source in sources] == [0, 1, 1, 0, 0]


def test_sources_with_outcomes_settle_when_there_is_room() -> None:
    claims, (one, two) = claims_of(Room(1), sources=2)
    two.unsettled = True
    claims.note_unsettled(two)

    claims.offer()

    assert (one.offers, two.offers) == (1, 1)
    claims.offer()
    assert (one.offers, two.offers) == (2, 1), "it was told"


def test_while_all_places_are_taken_only_whoever_claims_is_to_settle() -> None:
    claims, (one, two) = claims_of(Room(ahead=64, most=64), sources=2)
    two.unsettled = True
    claims.note_unsettled(two)

    claims.offer()

    assert (one.offers, two.offers) == (1, 0), "what others have to settle is due soon enough"


def test_nothing_is_offered_without_room() -> None:
    claims, (source,) = claims_of(Room(ahead=1, most=64))

    claims.offer()

    assert source.offers == 0


async def test_room_for_what_is_sent_ahead_is_what_one_has_and_a_share_of_what_is_free() -> None:
    slots = Room(free=5)
    claims, (one, other) = claims_of(slots, sources=2)
    slots.taken = {one: 3}
    assert (claims.room_of(one), claims.room_of(other)) == (5, 2)

    kept = claims.reserve(other, ahead=False)
    assert claims.room_of(one) < 5, "what is being claimed for is not free"
    claims.close(kept)


async def test_nobody_sends_ahead_for_less_than_a_place() -> None:
    claims, found = claims_of(Room(free=1), sources=2)

    assert [claims.room_of(source) for source in found] == [0, 0]
