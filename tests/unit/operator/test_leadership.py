"""The Lease: taken, kept, lost, given back; and what an API server that is away does not change."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.logs import lines
from tests.unit.operator.elections import START, Contest
from tidework.clock import ManualClock
from tidework_operator.cluster import ClusterError, Kind
from tidework_operator.leadership.election import RENEW_DEADLINE
from tidework_operator.patience import USUAL, Patience


async def test_a_leader_goes_on_while_the_api_server_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    contest = Contest()
    leader, standby = contest.candidate("a"), contest.candidate("b")
    await leader.tick()
    await standby.tick()

    contest.cluster.away = True
    await contest.pass_time(300, leader, standby)

    assert leader.leading
    assert not leader.is_confirmed
    assert not standby.leading
    assert sum("goes on leading" in r["message"] for r in lines(caplog, "lease_unreadable")) == 1

    contest.cluster.away = False
    await contest.pass_time(4, leader, standby)
    assert leader.is_confirmed
    assert not standby.leading


@pytest.mark.parametrize("status", [0, 403, 429, 500])
async def test_a_renewal_that_fails_stops_nobody(status: int) -> None:
    contest = Contest()
    leader = contest.candidate("a")
    await leader.tick()

    contest.cluster.fail("replace", Kind.LEASE, status=status)
    await contest.pass_time(2, leader)

    assert leader.leading


async def test_without_an_api_server_nobody_becomes_leader() -> None:
    contest = Contest()
    contest.cluster.away = True
    candidate = contest.candidate("a")

    await contest.pass_time(60, candidate)

    assert not candidate.leading


async def test_an_answer_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert USUAL.lease_look * 2 <= RENEW_DEADLINE, "there is time for another request"
    contest = Contest()
    leader = contest.candidate("a", patience=Patience(lease_look=timedelta(seconds=0.05)))
    await leader.tick()
    monkeypatch.setattr(contest.cluster, "get", _never)

    await leader.tick()

    assert leader.leading


async def _never(*_: object) -> None:
    await asyncio.Event().wait()


async def test_the_first_leads_and_keeps_leading() -> None:
    contest = Contest()
    first, second = contest.candidate("a"), contest.candidate("b")
    await first.tick()
    await contest.pass_time(120, second, first)

    assert (first.leading, second.leading) == (True, False)
    assert first.tenure == 1
    assert contest.lease() == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": "2026-01-05T10:00:00.000000Z",
        "renewTime": "2026-01-05T10:02:00.000000Z",
    }


async def test_who_renews_no_more_is_followed_after_the_duration_and_not_before() -> None:
    contest = Contest()
    first, second = contest.candidate("a"), contest.candidate("b")
    await first.tick()
    await second.tick()

    await contest.pass_time(15, second)
    assert not second.leading
    await contest.pass_time(2, second)

    assert second.leading
    assert contest.lease()["holderIdentity"] == "b"
    assert contest.lease()["leaseTransitions"] == 1


async def test_a_frozen_leader_steps_back_when_it_thaws() -> None:
    contest = Contest()
    frozen, second = contest.candidate("a"), contest.candidate("b")
    changes: list[bool] = []
    await frozen.tick()
    frozen._on_change = lambda: changes.append(frozen.leading)
    await second.tick()
    await contest.pass_time(60, second)
    assert frozen.leading  # it has not looked yet: terms keep it from writing

    await frozen.tick()

    assert not frozen.leading
    assert changes == [False]
    assert frozen.holder == "b"


async def test_the_clocks_of_others_do_not_count() -> None:
    contest = Contest()
    wrong = ManualClock(START - timedelta(hours=3))
    leader, standby = contest.candidate("a", clock=wrong), contest.candidate("b")
    await leader.tick()
    for _ in range(30):
        wrong.advance(timedelta(seconds=2))
        await leader.tick()
        await contest.pass_time(2, standby)

    assert leader.leading
    assert not standby.leading


async def test_a_standby_whose_clock_jumps_takes_nothing() -> None:
    contest = Contest()
    other = ManualClock(START)
    leader, standby = contest.candidate("a"), contest.candidate("b", clock=other)
    await leader.tick()
    await standby.tick()
    other.jump(timedelta(days=1))
    await contest.pass_time(2, leader)

    await standby.tick()

    assert not standby.leading


async def test_two_that_take_an_expired_lease_at_once_are_one_leader() -> None:
    contest = Contest()
    gone, second, third = (contest.candidate(name) for name in "abc")
    for candidate in (gone, second, third):
        await candidate.tick()
    contest.clock.advance(timedelta(seconds=16))
    held = await contest.cluster.get(Kind.LEASE, "tidework", "operator")
    assert held is not None

    await second.tick()
    # The third has read the Lease before the second wrote it.
    contest.cluster.get = _answering(held)  # type: ignore[method-assign]
    await third.tick()

    assert (second.leading, third.leading) == (True, False)
    assert contest.lease()["holderIdentity"] == "b"


def _answering(found: dict[str, Any]) -> Any:
    async def answer(*_: object) -> dict[str, Any]:
        return found

    return answer


async def test_two_that_create_the_lease_at_once_are_one_leader() -> None:
    contest = Contest()
    first, second = contest.candidate("a"), contest.candidate("b")
    await first.tick()
    real = contest.cluster.get
    contest.cluster.get = _answering(None)  # type: ignore[method-assign,arg-type]
    await second.tick()
    contest.cluster.get = real  # type: ignore[method-assign]
    await second.tick()

    assert (first.leading, second.leading) == (True, False)


async def test_a_conflict_at_renewal_is_no_loss() -> None:
    contest = Contest()
    leader = contest.candidate("a")
    await leader.tick()
    contest.cluster.fail("replace", Kind.LEASE, status=409)

    await contest.pass_time(2, leader)
    assert leader.leading
    await contest.pass_time(2, leader)

    assert leader.is_confirmed


async def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    contest = Contest()
    leader = contest.candidate("a")
    await leader.tick()
    contest.cluster.remove(Kind.LEASE, "tidework", "operator")

    await contest.pass_time(2, leader)

    assert leader.leading
    assert contest.lease()["holderIdentity"] == "a"


async def test_what_others_wrote_into_the_lease_stays() -> None:
    contest = Contest()
    leader = contest.candidate("a")
    await leader.tick()
    await contest.cluster.patch(
        Kind.LEASE, "tidework", "operator", {"metadata": {"labels": {"team": "x"}}}
    )

    await contest.pass_time(4, leader)

    assert contest.cluster.objects(Kind.LEASE)[0]["metadata"]["labels"] == {"team": "x"}


async def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    contest = Contest()
    first, second = contest.candidate("a"), contest.candidate("b")
    await first.tick()
    await second.tick()

    await first.release()
    await second.tick()

    assert (first.leading, second.leading) == (False, True)
    assert contest.lease()["leaseTransitions"] == 1


async def test_who_does_not_lead_gives_nothing_back() -> None:
    contest = Contest()
    first, second = contest.candidate("a"), contest.candidate("b")
    await first.tick()
    await second.tick()

    await second.release()

    assert contest.lease()["holderIdentity"] == "a"


async def test_who_was_overtaken_gives_nothing_back() -> None:
    contest = Contest()
    frozen, second = contest.candidate("a"), contest.candidate("b")
    await frozen.tick()
    await second.tick()
    await contest.pass_time(20, second)

    with pytest.raises(ClusterError, match="409"):
        await frozen.release()

    assert not frozen.leading
    assert contest.lease()["holderIdentity"] == "b"


async def test_giving_back_while_the_api_server_is_away_ends_the_lead_all_the_same() -> None:
    contest = Contest()
    leader = contest.candidate("a")
    await leader.tick()
    contest.cluster.away = True

    with pytest.raises(ClusterError):
        await leader.release()

    assert not leader.leading
