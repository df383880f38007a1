"""The Lease: taken, kept, lost, given back; and what an API server that is away does not change."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.logs import lines
from tests.unit.operator.elections import START, Bench
from tidework.clock import ManualClock
from tidework_operator.cluster import ClusterError, Kind


async def test_a_leader_goes_on_while_the_api_server_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    leader, standby = bench.candidate("a"), bench.candidate("b")
    await leader.tick()
    await standby.tick()

    bench.cluster.away = True
    await bench.pass_time(300, leader, standby)

    assert leader.leading
    assert not leader.is_confirmed
    assert not standby.leading
    assert sum("goes on leading" in r["message"] for r in lines(caplog, "lease_unreadable")) == 1

    bench.cluster.away = False
    await bench.pass_time(4, leader, standby)
    assert leader.is_confirmed
    assert not standby.leading


@pytest.mark.parametrize("status", [0, 403, 429, 500])
async def test_a_renewal_that_fails_stops_nobody(status: int) -> None:
    bench = Bench()
    leader = bench.candidate("a")
    await leader.tick()

    bench.cluster.fail("replace", Kind.LEASE, status=status)
    await bench.pass_time(2, leader)

    assert leader.leading


async def test_without_an_api_server_nobody_becomes_leader() -> None:
    bench = Bench()
    bench.cluster.away = True
    candidate = bench.candidate("a")

    await bench.pass_time(60, candidate)

    assert not candidate.leading


async def test_an_answer_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    leader = bench.candidate("a")
    await leader.tick()
    monkeypatch.setattr("tidework_operator.leadership.election._LOOK_WITHIN", timedelta(0))
    monkeypatch.setattr(bench.cluster, "get", _never)

    await leader.tick()

    assert leader.leading


async def _never(*_: object) -> None:
    await asyncio.Event().wait()


async def test_the_first_leads_and_keeps_leading() -> None:
    bench = Bench()
    first, second = bench.candidate("a"), bench.candidate("b")
    await first.tick()
    await bench.pass_time(120, second, first)

    assert (first.leading, second.leading) == (True, False)
    assert first.tenure == 1
    assert bench.lease() == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": "2026-01-05T10:00:00.000000Z",
        "renewTime": "2026-01-05T10:02:00.000000Z",
    }


async def test_who_renews_no_more_is_followed_after_the_duration_and_not_before() -> None:
    bench = Bench()
    first, second = bench.candidate("a"), bench.candidate("b")
    await first.tick()
    await second.tick()

    await bench.pass_time(15, second)
    assert not second.leading
    await bench.pass_time(2, second)

    assert second.leading
    assert bench.lease()["holderIdentity"] == "b"
    assert bench.lease()["leaseTransitions"] == 1


async def test_a_frozen_leader_steps_back_when_it_thaws() -> None:
    bench = Bench()
    frozen, second = bench.candidate("a"), bench.candidate("b")
    changes: list[bool] = []
    await frozen.tick()
    frozen._on_change = lambda: changes.append(frozen.leading)
    await second.tick()
    await bench.pass_time(60, second)
    assert frozen.leading  # it has not looked yet: terms keep it from writing

    await frozen.tick()

    assert not frozen.leading
    assert changes == [False]
    assert frozen.holder == "b"


async def test_the_clocks_of_others_do_not_count() -> None:
    bench = Bench()
    wrong = ManualClock(START - timedelta(hours=3))
    leader, standby = bench.candidate("a", clock=wrong), bench.candidate("b")
    await leader.tick()
    for _ in range(30):
        wrong.advance(timedelta(seconds=2))
        await leader.tick()
        await bench.pass_time(2, standby)

    assert leader.leading
    assert not standby.leading


async def test_a_standby_whose_clock_jumps_takes_nothing() -> None:
    bench = Bench()
    other = ManualClock(START)
    leader, standby = bench.candidate("a"), bench.candidate("b", clock=other)
    await leader.tick()
    await standby.tick()
    other.jump(timedelta(days=1))
    await bench.pass_time(2, leader)

    await standby.tick()

    assert not standby.leading


async def test_two_that_take_an_expired_lease_at_once_are_one_leader() -> None:
    bench = Bench()
    gone, second, third = (bench.candidate(name) for name in "abc")
    for candidate in (gone, second, third):
        await candidate.tick()
    bench.clock.advance(timedelta(seconds=16))
    held = await bench.cluster.get(Kind.LEASE, "tidework", "operator")
    assert held is not None

    await second.tick()
    # The third has read the Lease before the second wrote it.
    bench.cluster.get = _answering(held)  # type: ignore[method-assign]
    await third.tick()

    assert (second.leading, third.leading) == (True, False)
    assert bench.lease()["holderIdentity"] == "b"


def _answering(found: dict[str, Any]) -> Any:
    async def answer(*_: object) -> dict[str, Any]:
        return found

    return answer


async def test_two_that_create_the_lease_at_once_are_one_leader() -> None:
    bench = Bench()
    first, second = bench.candidate("a"), bench.candidate("b")
    await first.tick()
    real = bench.cluster.get
    bench.cluster.get = _answering(None)  # type: ignore[method-assign,arg-type]
    await second.tick()
    bench.cluster.get = real  # type: ignore[method-assign]
    await second.tick()

    assert (first.leading, second.leading) == (True, False)


async def test_a_conflict_at_renewal_is_no_loss() -> None:
    bench = Bench()
    leader = bench.candidate("a")
    await leader.tick()
    bench.cluster.fail("replace", Kind.LEASE, status=409)

    await bench.pass_time(2, leader)
    assert leader.leading
    await bench.pass_time(2, leader)

    assert leader.is_confirmed


async def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    bench = Bench()
    leader = bench.candidate("a")
    await leader.tick()
    bench.cluster.remove(Kind.LEASE, "tidework", "operator")

    await bench.pass_time(2, leader)

    assert leader.leading
    assert bench.lease()["holderIdentity"] == "a"


async def test_what_others_wrote_into_the_lease_stays() -> None:
    bench = Bench()
    leader = bench.candidate("a")
    await leader.tick()
    await bench.cluster.patch(
        Kind.LEASE, "tidework", "operator", {"metadata": {"labels": {"team": "x"}}}
    )

    await bench.pass_time(4, leader)

    assert bench.cluster.objects(Kind.LEASE)[0]["metadata"]["labels"] == {"team": "x"}


async def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    bench = Bench()
    first, second = bench.candidate("a"), bench.candidate("b")
    await first.tick()
    await second.tick()

    await first.release()
    await second.tick()

    assert (first.leading, second.leading) == (False, True)
    assert bench.lease()["leaseTransitions"] == 1


async def test_who_does_not_lead_gives_nothing_back() -> None:
    bench = Bench()
    first, second = bench.candidate("a"), bench.candidate("b")
    await first.tick()
    await second.tick()

    await second.release()

    assert bench.lease()["holderIdentity"] == "a"


async def test_who_was_overtaken_gives_nothing_back() -> None:
    bench = Bench()
    frozen, second = bench.candidate("a"), bench.candidate("b")
    await frozen.tick()
    await second.tick()
    await bench.pass_time(20, second)

    with pytest.raises(ClusterError, match="409"):
        await frozen.release()

    assert not frozen.leading
    assert bench.lease()["holderIdentity"] == "b"


async def test_giving_back_while_the_api_server_is_away_ends_the_lead_all_the_same() -> None:
    bench = Bench()
    leader = bench.candidate("a")
    await leader.tick()
    bench.cluster.away = True

    with pytest.raises(ClusterError):
        await leader.release()

    assert not leader.leading
