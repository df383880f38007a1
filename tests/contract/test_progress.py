"""What running jobs say of themselves: kept under their lease, gone with their end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.conftest import LEASE, Kit
from tidework.broker.keys import queue_key
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.backlog import JobRecord
from tidework.model.job import Job, JobState
from tidework.model.lease import Lease, QueueLimits, Settlement
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.progress import ProgressNote, positions_text, progress_text

ERROR = JobError("E", "m")


async def claim(kit: Kit, *names: str, worker: str = "w1") -> list[Lease]:
    await kit.put(*(Job(name, "t", {}) for name in names))
    claimed = (await kit.exchange(want=len(names), worker=worker)).claimed
    return [Lease(found.id, found.token) for found in claimed]


async def claim_again(kit: Kit, worker: str = "w1") -> Lease:
    (found,) = (await kit.exchange(want=1, worker=worker)).claimed
    return Lease(found.id, found.token)


async def tell(
    kit: Kit, lease: Lease, sequence: int, done: int | None = None, at: int | None = None
) -> bool:
    """A note of ``done`` and of a checkpoint that stands ``at``; was it taken?"""
    progress = b"" if done is None else progress_text(done, 100, f"item {done}")
    positions = b"" if at is None else positions_text({"": at})
    note = ProgressNote(*lease, sequence, progress, positions)
    return await kit.broker.note_progress(kit.queue, [note]) == ()


async def record_of(kit: Kit, name: str = "a") -> JobRecord:
    found = await kit.broker.get_job(kit.queue, name)
    assert found is not None
    return found


async def done_of(kit: Kit, name: str = "a") -> float | None:
    progress = (await record_of(kit, name)).progress
    return None if progress is None else progress.done


async def test_what_a_job_said_last_is_told(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    assert (await record_of(kit)).progress is None
    assert (await record_of(kit)).checkpoints == {}

    assert await tell(kit, lease, 1, done=3)
    assert await tell(kit, lease, 2, done=4, at=17)

    record = await record_of(kit)
    assert record.progress is not None
    found = record.progress
    assert (found.done, found.total, found.note) == (4, 100, "item 4")
    assert abs(found.at.timestamp() - kit.now) < 30
    assert record.checkpoints == {"": 17}
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}
    assert await kit.broker.checkpoints(kit.queue, "nobody") == {}


async def test_what_a_note_leaves_out_stays(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, done=3, at=17)
    await tell(kit, lease, 2, done=4)
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}
    await tell(kit, lease, 3, at=18)
    assert await done_of(kit) == 4


async def test_a_copy_that_comes_late_moves_nothing_back(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 2, done=4, at=18)

    assert await tell(kit, lease, 2, done=4, at=18), "a reply may be lost"
    assert await tell(kit, lease, 1, done=3, at=17)

    assert await done_of(kit) == 4
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 18}


async def test_a_stale_holder_is_refused(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, at=17)
    await kit.exchange(Settlement(*lease, Outcome.release()))
    assert not await tell(kit, lease, 2, at=18), "nobody holds it"
    again = await claim_again(kit, "w2")

    assert not await tell(kit, lease, 3, at=19)
    assert not await tell(kit, Lease("nobody", "w1:1"), 1, at=1)

    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}
    assert await tell(kit, again, 1, at=18), "each lease counts for itself"
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 18}


async def test_of_several_jobs_only_those_that_are_lost_are_refused(kit: Kit) -> None:
    first, second = await claim(kit, "a", "b")
    await kit.exchange(Settlement(*first, Outcome.complete()))
    notes = [ProgressNote(*lease, 1, progress_text(5, None, ""), b"") for lease in (first, second)]

    assert await kit.broker.note_progress(kit.queue, notes) == ("a",)

    assert await done_of(kit, "b") == 5


@pytest.mark.parametrize(
    "outcome",
    [Outcome.retry(ERROR, timedelta(0)), Outcome.release(), Outcome.loss(ERROR)],
    ids=["retry", "release", "loss"],
)
async def test_a_job_that_runs_again_keeps_it(kit: Kit, outcome: Outcome) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, done=3, at=17)

    await kit.exchange(Settlement(*lease, outcome))
    if outcome.kind is OutcomeKind.LOSS:
        await kit.let_pass(LEASE)

    again = await claim_again(kit)
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}
    assert await tell(kit, again, 1, done=0), "a new attempt begins anew"
    assert await done_of(kit) == 0
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}


async def test_a_job_whose_lease_expired_keeps_it(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, at=17)
    await kit.let_pass(LEASE * 1.2)
    await kit.broker.upkeep(kit.queue)

    again = await claim_again(kit)

    assert again.token != lease.token
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.complete(), JobState.SUCCEEDED),
        (Outcome.complete(b"7"), JobState.SUCCEEDED),
        (Outcome.cancelled("it ended by itself"), JobState.CANCELLED),
    ],
    ids=["success", "result", "cancelled"],
)
async def test_a_job_that_ended_has_none(kit: Kit, outcome: Outcome, state: JobState) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, done=3, at=17)

    await kit.exchange(Settlement(*lease, outcome))

    record = await record_of(kit)
    assert (record.state, record.progress, record.checkpoints) == (state, None, {})
    assert record.history[-1].cause == outcome.cause


async def test_a_job_cancelled_while_it_waits_to_run_again_has_none(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, at=17)
    await kit.exchange(Settlement(*lease, Outcome.release(timedelta(minutes=1))))

    await kit.broker.cancel(kit.queue, "a")

    assert (await record_of(kit)).checkpoints == {}


async def test_a_dead_letter_keeps_it_for_its_replay_and_takes_it_along(kit: Kit) -> None:
    (lease,) = await claim(kit, "a")
    await tell(kit, lease, 1, at=17)
    await kit.exchange(Settlement(*lease, Outcome.bury(ERROR)))
    assert (await record_of(kit)).checkpoints == {"": 17}

    await kit.broker.replay(kit.queue, ["a"])
    again = await claim_again(kit)
    assert await kit.broker.checkpoints(kit.queue, "a") == {"": 17}

    await kit.exchange(Settlement(*again, Outcome.bury(ERROR)))
    await kit.broker.purge(kit.queue, ["a"])
    assert await kit.broker.checkpoints(kit.queue, "a") == {}


async def test_what_a_worker_of_an_older_version_left_goes_with_its_job(kit: Kit) -> None:
    """It settles by a script that knows of no progress."""
    if not isinstance(kit.broker, RedisBroker):
        pytest.skip("the model has one version")
    kit.use(QueueLimits(lease=timedelta(minutes=1), keep_succeeded=timedelta(milliseconds=1)))
    first, second = await claim(kit, "a", "b")
    await kit.exchange(Settlement(*first, Outcome.complete()))
    key = queue_key(kit.queue, "progress")
    assert isinstance(kit.broker, RedisBroker)
    await kit.broker.transport.command("HSET", key, "a", "w1:1 1 1\t\t{}")
    await kit.let_pass(timedelta(milliseconds=20))

    await kit.exchange(Settlement(*second, Outcome.retry(ERROR, timedelta(minutes=1))))

    assert await kit.broker.get_job(kit.queue, "a") is None
    assert await kit.broker.transport.command("HLEN", key) == 0
