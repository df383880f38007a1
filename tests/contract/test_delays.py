"""A span counts by the queue's clock; an instant is what it says."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Kit
from tidework.model.fire import FireRequest, Verdict
from tidework.model.job import Job, JobState
from tidework.model.unique import Unique

HOUR = 3600.0


async def due_in(kit: Kit, job_id: str) -> float:
    """Seconds until the job is due, by the queue's clock."""
    found = await kit.broker.get_job(kit.queue, job_id)
    assert found is not None
    assert found.available_at is not None
    return found.available_at.timestamp() - kit.now


@pytest.mark.parametrize("off", [-HOUR, 0.0, HOUR], ids=["behind", "right", "ahead"])
@pytest.mark.parametrize("unique", [None, Unique("k")])
async def test_a_delay_counts_from_when_the_queue_takes_the_job(
    kit: Kit, off: float, unique: Unique | None
) -> None:
    wrong = kit.now + off
    await kit.put(Job("delayed", "t", {}, created_at=wrong, unique=unique, delay=60.0))

    assert 50 < await due_in(kit, "delayed") <= 60.01
    found = await kit.broker.get_job(kit.queue, "delayed")
    assert found is not None
    assert found.state is JobState.SCHEDULED
    assert b"available_at" not in found.body, "the producer does not know when that is"


async def test_one_of_no_length_or_of_the_past_is_due_at_once(kit: Kit) -> None:
    await kit.put(Job("now", "t", {}, delay=0.0), Job("earlier", "t", {}, delay=-30.0))

    reply = await kit.exchange(want=2)
    assert [found.id for found in reply.claimed] == ["earlier", "now"]
    assert -40 < await due_in(kit, "earlier") <= -29.99


async def test_an_instant_stays_what_it_says(kit: Kit) -> None:
    at = kit.now + HOUR
    await kit.put(Job("at", "t", {}, available_at=at))

    found = await kit.broker.get_job(kit.queue, "at")
    assert found is not None
    assert found.available_at is not None
    assert found.available_at.timestamp() == pytest.approx(at, abs=0.001)


async def test_a_fire_has_waited_as_long_as_its_leader_says(kit: Kit) -> None:
    """However far the leader's clock is from the queue's."""
    term = await kit.broker.take_term(kit.queue)
    await kit.broker.put_crontasks(kit.queue, term, {"c": b"{}"})
    await kit.broker.admit_cron(kit.queue, term, "c", "f", 0, reset=False)
    fire = int(kit.now + HOUR)
    job = Job("fired", "t", {}, created_at=fire + 2, available_at=fire, delay=-2.0)
    request = FireRequest("c", "f", fire, Verdict.ENQUEUED, job=job)

    assert await kit.broker.decide_fires(kit.queue, term, [request]) == (Verdict.ENQUEUED,)

    assert [found.id for found in (await kit.exchange(want=1)).claimed] == ["fired"]
    assert -10 < await due_in(kit, "fired") <= -1.99
