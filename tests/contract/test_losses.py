"""Losses: pauses that grow between them, and the poison cap."""

from __future__ import annotations

from tests.contract.conftest import LEASE, Kit
from tests.contract.test_jobs import BOOM, claim_one, end, job, state_of
from tidework.model.job import JobState
from tidework.model.lease import QueueLimits
from tidework.model.losses import pause_after
from tidework.model.outcome import JobError, Outcome


async def test_losses_make_a_job_poison_and_drains_do_not(kit: Kit) -> None:
    await kit.put(job("a"))
    crash = JobError("WorkerLost", "signal 11 (SIGSEGV)", cause="signal")
    await kit.exchange(end(await claim_one(kit), Outcome.release()))
    for losses in (1, 2):
        await kit.exchange(end(await claim_one(kit), Outcome.loss(crash)))
        record = await kit.broker.get_job(kit.queue, "a")
        assert record is not None
        assert (record.state, record.losses) == (JobState.SCHEDULED, losses)
        await kit.let_pass(pause_after(losses, LEASE) * 1.1)
    await kit.exchange(end(await claim_one(kit), Outcome.loss(crash)))
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert (record.state, record.losses, record.error) == (JobState.DEAD, 3, crash)


async def test_the_pause_after_a_loss_grows(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, poison_cap=9))
    await kit.put(job("a"))
    for losses, tenths in ((1, 1), (2, 10), (3, 50)):
        await kit.exchange(end(await claim_one(kit), Outcome.loss(BOOM)))
        record = await kit.broker.get_job(kit.queue, "a")
        assert record is not None
        assert record.available_at is not None
        assert record.changed_at is not None
        pause = record.available_at - record.changed_at
        assert pause == pause_after(losses, LEASE) == LEASE * tenths / 10
        if losses < 3:
            await kit.let_pass(pause * 1.1)
    assert (await kit.exchange(want=1)).claimed == (), "it waits"


async def test_of_a_lease_that_expired_a_lease_of_the_pause_is_over(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, poison_cap=9))
    await kit.put(job("a"))
    for state in (JobState.READY, JobState.READY, JobState.SCHEDULED):
        await claim_one(kit)
        await kit.let_pass(LEASE * 1.5)
        assert (await kit.broker.upkeep(kit.queue)).reaped == 1
        assert await state_of(kit, "a") is state
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert record.available_at is not None
    assert record.changed_at is not None
    assert record.available_at - record.changed_at == pause_after(3, LEASE, LEASE) == LEASE * 4


async def test_a_poison_job_dies_by_reaping_too(kit: Kit) -> None:
    kit.use(QueueLimits(lease=LEASE, poison_cap=1))
    await kit.put(job("a"))
    await claim_one(kit, worker='w"1')
    await kit.let_pass(LEASE * 1.5)
    reply = await kit.broker.upkeep(kit.queue)
    assert (reply.reaped, reply.buried) == (0, 1)
    record = await kit.broker.get_job(kit.queue, "a")
    assert record is not None
    assert record.error is not None
    assert (record.error.type, record.error.cause) == ("LeaseExpired", "lost")
    assert 'w"1' in record.error.message
