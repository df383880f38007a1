"""Claims: who may claim how much, and whose turn it is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.worker.children import Make, PoolBench
from tests.unit.worker.jobs import Source
from tidework.worker.held import JobSource, Mode
from tidework.worker.places.claims import Claims, Grant


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made = []

    def build(slots: int = 1, **options: int) -> PoolBench:
        made.append(PoolBench(slots, **options))
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


def claims_of(*rooms: Room, sources: int = 1) -> tuple[Claims, list[Source]]:
    found = [Source(index) for index in range(sources)]
    claims = Claims(rooms)
    for source in found:
        claims.add_source(source)
    return claims, found


async def test_room_to_claim_ahead_follows_the_service_time(make: Make) -> None:
    bench = make(2)
    assert bench.pool.dispatch.ahead() == (0, 0)
    bench.pool._times.note("t", 0.01)

    assert bench.pool.dispatch.ahead() == (10, 10)
    bench.source.add("a", "b", "c")
    bench.pool.dispatch.turns.look()
    assert bench.pool.dispatch.ahead() == (7, 10)


async def test_a_slot_whose_job_runs_long_gives_no_room(make: Make) -> None:
    bench = make()
    bench.pool._times.note("t", 0.01)
    bench.source.add("a")
    bench.pool.dispatch.run()
    bench.begin(bench.orders.children[0], 1, ago=1)

    assert bench.pool.dispatch.ahead() == (0, 0)


def test_idle_places_are_granted_once() -> None:
    claims, (source,) = claims_of(Room(3))

    grant = claims.reserve(source, ahead=True)

    assert grant == Grant(3, (3,), due=True)
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

    assert claims.reserve(source, ahead=True) == Grant(ahead, (0,), due=due)


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


@pytest.mark.parametrize(
    ("shares", "free", "want"),
    [
        ((1.0, 0.0), (2, 100), 2),
        ((0.0, 1.0), (2, 100), 100),
        ((0.5, 0.5), (1, 100), 3),
        ((0.5, 0.5), (0, 100), 1),
        ((0.02, 0.98), (1, 97), 75),
        ((0.3, 0.7), (1, 0), 1),
        ((0.3, 0.7), (0, 0), 0),
        ((0.999, 0.001), (4, 100), 4),
        ((0.999, 0.001), (0, 100), 0),
    ],
)
def test_a_claim_hardly_brings_more_jobs_of_a_mode_than_there_are_places(
    shares: tuple[float, ...], free: tuple[int, int], want: int
) -> None:
    claims, (source,) = claims_of(Room(free[0]), Room(free[1]))
    source.shares = shares

    assert claims.reserve(source, ahead=False).want == want


@pytest.mark.parametrize(
    ("idle_slots", "room_on_loop", "due"), [(1, 10, False), (1, 64, True), (0, 64, True)]
)
def test_idle_places_of_a_kind_that_a_queue_does_not_need_are_no_reason_for_an_exchange(
    *, idle_slots: int, room_on_loop: int, due: bool
) -> None:
    claims, (source,) = claims_of(Room(idle_slots), Room(ahead=room_on_loop, most=100))
    source.shares = (0.001, 0.999)

    grant = claims.reserve(source, ahead=True)
    claims.close(grant)
    claims.offer()

    assert grant.due == due
    assert source.offers == due


def test_a_queue_whose_places_are_taken_leaves_its_turn_to_the_next() -> None:
    claims, (one, two) = claims_of(Room(1), Room(0), sources=2)
    one.shares = (0.0, 1.0)

    claims.offer()

    assert (one.offers, two.offers) == (0, 1)


def test_outcomes_wait_for_others_while_only_places_of_another_kind_are_idle() -> None:
    claims, (one, two) = claims_of(Room(1), Room(0), sources=2)
    one.shares = (0.0, 1.0)
    for source in (one, two):
        source.hungry, source.unsettled = False, True
        claims.note_unsettled(source)

    claims.offer()

    assert (one.offers, two.offers) == (0, 1)


def test_a_job_that_waits_for_a_place_of_its_mode_keeps_its_queue_from_claiming() -> None:
    claims, (source,) = claims_of(Room(0), Room(10))
    source.shares = (0.5, 0.5)
    source.add("a")
    assert source.lines[Mode.ALONE]

    assert claims.reserve(source, ahead=False).want == 0
    source.shares = (0.0, 1.0)
    assert claims.reserve(source, ahead=False).want == 10, "it was lost, the others are not"


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


def test_no_place_is_left_for_a_queue_that_would_hardly_take_it() -> None:
    claims, (one, two) = claims_of(Room(0), Room(1), sources=2)
    one.shares, two.shares = (0.999, 0.001), (0.001, 0.999)

    claims.offer()

    assert (one.offers, two.offers) == (0, 1)
    assert claims.reserve(two, ahead=True).want == 1


def test_jobs_ahead_are_granted_past_a_queue_of_another_kind() -> None:
    claims, (one, two) = claims_of(Room(0), Room(ahead=64), sources=2)
    one.shares, two.shares = (0.999, 0.001), (0.001, 0.999)

    grant = claims.reserve(two, ahead=True)

    assert (grant.want, grant.due) == (64, True)


def test_a_queue_whose_job_waits_for_a_place_of_its_mode_keeps_no_other_from_claiming() -> None:
    claims, (one, two) = claims_of(Room(0), Room(1), sources=2)
    one.shares = two.shares = (0.5, 0.5)
    one.add("a")

    claims.offer()

    assert (one.offers, two.offers) == (0, 1)
    assert claims.reserve(two, ahead=True).want == 1
