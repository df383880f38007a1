"""A leader that restarts: when it leads on without asking, and when it must not."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.logs import lines
from tests.unit.operator.elections import Contest
from tidework_operator.cluster import Kind


async def test_a_restarted_leader_of_the_same_name_leads_on_at_once(tmp_path: Path) -> None:
    contest = Contest()
    await contest.candidate("a").tick()
    again = contest.candidate("a")

    await again.tick()

    assert again.leading
    assert contest.lease()["leaseTransitions"] == 0


async def test_a_leader_that_restarts_while_the_api_server_is_away_leads_on(
    tmp_path: Path,
) -> None:
    contest = Contest()
    marker = tmp_path / "leader"
    await contest.candidate("a", marker=marker).tick()
    contest.cluster.away = True

    again = contest.candidate("a", marker=marker)
    await contest.pass_time(14, again)
    assert not again.leading
    await contest.pass_time(6, again)

    assert again.leading
    assert not again.is_confirmed
    assert again.confirmed == 0


async def test_after_such_a_restart_the_holder_of_the_lease_wins_when_it_can_be_seen(
    tmp_path: Path,
) -> None:
    contest = Contest()
    marker = tmp_path / "leader"
    await contest.candidate("a", marker=marker).tick()
    other = contest.candidate("b")
    await other.tick()
    await contest.pass_time(20, other)
    contest.cluster.away = True
    again = contest.candidate("a", marker=marker)
    await contest.pass_time(20, again, other)
    assert again.leading

    contest.cluster.away = False
    await contest.pass_time(2, again, other)

    assert (again.leading, other.leading) == (False, True)
    assert not marker.exists()


@pytest.mark.parametrize("how", ["released", "overtaken", "renamed"])
async def test_who_led_no_more_before_its_restart_waits_for_the_api_server(
    tmp_path: Path, how: str
) -> None:
    contest = Contest()
    marker = tmp_path / "leader"
    leader, other = contest.candidate("a", marker=marker), contest.candidate("b")
    await leader.tick()
    if how == "released":
        await leader.release()
    if how == "overtaken":
        await other.tick()
        await contest.pass_time(20, other)
        await leader.tick()
    contest.cluster.away = True

    again = contest.candidate("c" if how == "renamed" else "a", marker=marker)
    await contest.pass_time(60, again)

    assert not again.leading


async def test_an_api_server_that_forbids_the_lease_is_no_outage(tmp_path: Path) -> None:
    contest = Contest()
    marker = tmp_path / "leader"
    await contest.candidate("a", marker=marker).tick()
    contest.cluster.fail("get", Kind.LEASE, status=403, times=100)

    again = contest.candidate("a", marker=marker)
    await contest.pass_time(60, again)

    assert not again.leading


async def test_a_marker_that_cannot_be_written_is_said_and_borne(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    contest = Contest()
    leader = contest.candidate("a", marker=tmp_path / "missing" / "leader")

    with caplog.at_level(logging.WARNING):
        await leader.tick()

    assert leader.leading
    assert lines(caplog, "lead_not_noted")
