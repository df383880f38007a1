"""What the rows of the table of requests are made of: what comes before and after a request, and
requests that need more than a line."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.integration.broker.rig import (
    MINUTE,
    TERM,
    Request,
    Rig,
    job,
    presence,
    settle,
)
from tidework.broker.acts import Act
from tidework.broker.documents import MAX_DOCUMENT_BYTES, hand_out
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.backlog import StacksAnswer
from tidework.model.fire import ConcurrencyPolicy, FireRequest
from tidework.model.job import Job, JobState
from tidework.model.lease import ExchangeReply
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique

SECOND = timedelta(seconds=1)
ERROR = JobError("E", "m")
NO_ID = b'{"task":"t"}'
BROKEN = b"broken"
NAMED = b'{"task":"t","id":"named"}'
BROKEN_NAMED = b'{"task":7,"id":"named"}'
LARGE = b'{"id":"large","task":"t","x":"' + b"x" * MAX_DOCUMENT_BYTES + b'"}'
LARGE_AS_READ = hand_out(LARGE)
THIRD = b'{"task":"t","id":"third","created_at":1}'
SETTLED = (
    settle("s1", "w", 1, Outcome.complete(b"7")),
    settle("s2", "w", 1, Outcome.retry(ERROR, MINUTE)),
    settle("s3", "w", 1, Outcome.release()),
    settle("s4", "w", 1, Outcome.bury(ERROR)),
    settle("s5", "w", 1, Outcome.loss(ERROR)),
    settle("s6", "w", 1, Outcome.cancelled()),
    settle("s7", "w", 1, Outcome.release_unknown(SECOND, MINUTE, "unknown")),
    settle("stranger", "w", 1),
)


async def claim_all(rig: Rig) -> None:
    """Seven jobs more, so that one can end in each way."""
    await rig.put(*(job(f"s{i}") for i in range(1, 8)))
    assert len((await rig.exchange("w", 1, 9)).claimed) == 9


async def be_unknown(rig: Rig) -> None:
    """A worker did not know the task of a job, and another one was known to it."""
    assert [found.id for found in (await rig.exchange("w", 1, 1)).claimed] == ["ready1"]
    unknown = Outcome.release_unknown(MINUTE, MINUTE, "unknown")
    await rig.exchange("w", 2, 0, settle("ready1", "w", 1, unknown))
    await rig.broker.announce(rig.queue, "v1", ["other"])


async def announce_others(rig: Rig) -> None:
    """It ran; a worker of the next version has come."""
    assert "ready1" in [found.id for found in (await rig.exchange("w", 3, 2)).claimed]
    await rig.end("w", 4, "ready1", of=3)
    await announce_next(rig)


async def announce_next(rig: Rig) -> None:
    await rig.broker.announce(rig.queue, "v3", ["t", "third"])


async def run_and_forget(rig: Rig) -> None:
    """One that was enqueued ran and was pruned; one that was scheduled was cancelled."""
    assert (await rig.exchange("w", 1, 1)).claimed[0].id == "new1"
    await rig.end("w", 2, "new1", of=1)
    await rig.broker.cancel(rig.queue, "new2")
    await rig.prune_now()
    assert await rig.broker.get_job(rig.queue, "new1") is None


async def take_documents(rig: Rig, *raws: bytes) -> None:
    """They lie in intake."""
    for raw in raws:
        rig.put_document(raw)
    assert await rig.take_document() == hand_out(raws[0])
    moved = await rig.broker.intake(rig.queue, [], [], more=len(raws) - 1)
    assert moved == tuple(map(hand_out, raws[1:]))


async def take_different(rig: Rig) -> None:
    await take_documents(rig, NO_ID, BROKEN)
    rig.put_document(THIRD)


async def take_marker(rig: Rig) -> None:
    """A marker lies in intake until an exchange removes it."""
    assert await rig.broker.wait_for_document(rig.queue, SECOND) == b"!"


async def start_run(rig: Rig) -> None:
    """A CronTask with a run under way."""
    await rig.admit("c1")
    await rig.fire("c1", 1000, ConcurrencyPolicy.ALLOW)
    assert "c1-1000" in [found.id for found in (await rig.exchange("w", 1, 9)).claimed]


async def hold_run(rig: Rig) -> None:
    """And with one that Replace holds until that has ended."""
    await start_run(rig)
    await rig.fire("c1", 1001, ConcurrencyPolicy.REPLACE)


async def end_run(rig: Rig) -> None:
    await rig.end("w", 2, "c1-1000", of=1)


async def end_runs(rig: Rig) -> None:
    """Also the one that was held; then comes the next fire."""
    await end_run(rig)
    assert [found.id for found in (await rig.exchange("w", 3, 1)).claimed] == ["c1-1001"]
    await rig.end("w", 4, "c1-1001", of=3)
    await rig.fire("c1", 1002, ConcurrencyPolicy.REPLACE)


async def end_run_and_fire(rig: Rig) -> None:
    await end_run(rig)
    await rig.fire("c1", 1002, ConcurrencyPolicy.FORBID)


async def fire_on(rig: Rig) -> None:
    await rig.fire("c1", 3000, ConcurrencyPolicy.ALLOW)


async def admit_again(rig: Rig) -> None:
    """The schedule has changed once more."""
    await rig.admit("c1", "later", 960)


async def mirror_others(rig: Rig) -> None:
    """c1 has left; c2 has come, and has fired."""
    await rig.broker.put_crontasks(rig.queue, TERM, {"c0": b"{}", "c2": b"{}"})
    await rig.admit("c2")
    await rig.fire("c2", 1000, ConcurrencyPolicy.ALLOW)


def whole(reply: Any) -> object:
    return reply


def given(reply: ExchangeReply) -> object:
    return reply.claimed, reply.refused


def unique(name: str, on_conflict: OnConflict = OnConflict.SKIP) -> Job:
    return job(name, priority=0, unique=Unique("key", on_conflict=on_conflict))


async def run_and_take_key(rig: Rig) -> None:
    """The job ran and was pruned; its key is another's now."""
    assert (await rig.exchange("w", 1, 1)).claimed[0].id == "new1"
    await rig.end("w", 2, "new1", of=1)
    await rig.put(unique("new2"))


async def start_unique(rig: Rig) -> None:
    """The holder of the key is running."""
    await rig.put(unique("new1"))
    assert (await rig.exchange("w", 1, 1)).claimed[0].id == "new1"


async def refuse_document(rig: Rig) -> None:
    """A document that was refused lies among the dead letters, as ``rig.letter``."""
    await take_documents(rig, BROKEN)
    before = set((await rig.broker.list_jobs(rig.queue, JobState.DEAD)).ids)
    await rig.intake(rig.broker, BROKEN)
    (rig.letter,) = set((await rig.broker.list_jobs(rig.queue, JobState.DEAD)).ids) - before


async def replay_named(rig: Rig) -> None:
    """The letter went back to the inbox, and was taken out of it."""
    assert await rig.broker.replay(rig.queue, ["named"]) == ("replayed",)
    assert await rig.take_document() == BROKEN_NAMED
    await rig.broker.intake(rig.queue, [], [])  # wakes the next worker


def run_by_hand(term: int | None) -> Request:
    def call(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
        return broker.run_now(rig.queue, term, "c0", "n1", job("c0-run-n1"))

    return call


async def run_by_hand_again(rig: Rig) -> None:
    await rig.broker.run_now(rig.queue, TERM, "c0", "n2", job("c0-run-n2"))


def backfill(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
    past = {800: job("c0-800"), 1000: job("c0-1000")}
    return broker.backfill(rig.queue, "c0", past, policy=ConcurrencyPolicy.ALLOW, note="ann")


async def run_backfilled(rig: Rig) -> None:
    """It ran since, and nobody knows its job any more."""
    await rig.broker.cancel(rig.queue, "c0-800")
    await rig.broker.purge(rig.queue, ["c0-800"])
    await rig.forget("tombstones")


ACT = Act(
    "a1",
    datetime.fromtimestamp(1.5e9, UTC),
    "ann",
    "token",
    "operator",
    "act",
    "/queues/q",
    "",
    200,
)


async def act_after(rig: Rig) -> None:
    await rig.broker.note_act(rig.queue.namespace, replace(ACT, id="a2"))


def suspend_it(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
    return broker.suspend_cron(rig.queue, "c0", by="ann", reason="a repair")


async def suspend(rig: Rig) -> None:
    await suspend_it(rig, rig.broker)


async def resume_it(rig: Rig) -> None:
    await rig.broker.resume_cron(rig.queue, "c0")


def decide(*requests: FireRequest) -> Request:
    return lambda rig, broker: broker.decide_fires(rig.queue, TERM, requests)


def admit(fingerprint: str, start: int, *, reset: bool = False) -> Request:
    def call(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
        return broker.admit_cron(rig.queue, TERM, "c1", fingerprint, start, reset=reset)

    return call


def cancel(job_id: str) -> Request:
    return lambda rig, broker: broker.cancel(rig.queue, job_id)


def upkeep(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
    return broker.upkeep(rig.queue)


def beat(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
    return broker.beat(rig.queue, presence("w", 1), ttl=MINUTE)


def answer(rig: Rig, broker: RedisBroker, number: int) -> Awaitable[object]:
    """The worker tells its stacks."""
    stacks = StacksAnswer(number, {"number": number})
    return broker.beat(rig.queue, presence("old", 0), ttl=MINUTE, stacks=stacks)


async def ask(rig: Rig) -> None:
    assert await rig.broker.ask_stacks(rig.queue, "old")


async def ask_and_answer(rig: Rig) -> None:
    await ask(rig)
    await answer(rig, rig.broker, 2)


def cordon_old(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
    return broker.cordon(rig.queue, "old")


async def cordon_and_ask(rig: Rig) -> None:
    await cordon_old(rig, rig.broker)
    await ask(rig)


async def leave(rig: Rig) -> None:
    await rig.broker.leave(rig.queue, "old")


def lead(rig: Rig, broker: RedisBroker) -> Awaitable[object]:
    return broker.lead(rig.queue, "next", MINUTE)
