"""What each role of docs/redis-access.md does, in scenes that come to every command it needs.

In a scene the stage is set by a user who may do anything; the role's own user acts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import redis

from tests.integration.broker.request_steps import ACT
from tidework.broker.answers import CordonAnswer, OnceAnswer, UncordonAnswer
from tidework.broker.documents import AcceptedDocument, RejectedDocument
from tidework.broker.keys import REGISTRY
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.intake import read_document
from tidework.model.backlog import JobFilter, Presence
from tidework.model.durability import Durability
from tidework.model.fire import ConcurrencyPolicy, FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import (
    ExchangeReply,
    ExchangeRequest,
    Lease,
    QueueLimits,
    RunTimes,
    Settlement,
)
from tidework.model.outcome import JobError, Outcome
from tidework.model.progress import ProgressNote
from tidework.model.scaled import Scaled
from tidework.model.unique import OnConflict, Unique

FORGETFUL = QueueLimits(lease=timedelta(minutes=1), keep_dead=timedelta(0))
"""Nobody's lease runs out while a test looks; dead letters are pruned at once."""
ERROR = JobError("E", "m")
FAR = 4_000_000_000.0
MINUTE = timedelta(minutes=1)


@dataclass(slots=True)
class Stage:
    """One queue. ``staff`` may do anything; ``player`` is the role's; ``client`` is the staff's."""

    staff: RedisBroker
    player: RedisBroker
    client: redis.Redis
    queue: QueueName

    def key(self, part: str) -> str:
        """Of the queue."""
        return f"tw1:{{{self.queue}}}:{part}"

    def put_document(self, raw: bytes, part: str = "inbox") -> None:
        """What a foreign program does; or what a worker that died left in ``intake``."""
        self.client.lpush(self.key(part), raw)

    async def put(self, *names: str) -> None:
        """Enqueue."""
        await self.staff.enqueue(self.queue, [job(name) for name in names])

    async def claim(self, sequence: int, want: int) -> list[str]:
        """Jobs for the worker ``w``."""
        reply = await self.exchange(self.staff, sequence, want)
        return [found.id for found in reply.claimed]

    async def exchange(
        self, broker: RedisBroker, sequence: int, want: int, *ends: Settlement
    ) -> ExchangeReply:
        """Of the worker ``w``."""
        served = {"t": RunTimes(1, 0.1, {14: 1})} if ends else {}
        request = ExchangeRequest("w", sequence, want, ends, woken=True, served=served)
        return await broker.exchange(self.queue, request)

    async def hold_run(self) -> str:
        """A CronTask whose run is claimed, and one that waits for its end; the claimed one's id."""
        await self.staff.admit_cron(self.queue, 1, "c", "f", 900, reset=False)
        await self.staff.decide_fires(self.queue, 1, [fire(1000)])
        assert await self.claim(1, 1) == ["c-1000"]
        await self.staff.decide_fires(self.queue, 1, [fire(1001, ConcurrencyPolicy.REPLACE)])
        return "c-1000"

    async def have_dead(self, sequence: int, *names: str) -> None:
        """Dead letters; claims with ``sequence`` and the next one."""
        await self.put(*names)
        ends = [end(name, sequence, Outcome.bury(ERROR)) for name in names]
        assert sorted(await self.claim(sequence, len(names))) == sorted(names)
        await self.exchange(self.staff, sequence + 1, 0, *ends)

    def have_counted_much(self) -> None:
        """More than is written down before it is added up."""
        line = f"{int(datetime.now(UTC).timestamp() // 60)} t e:1\n"
        self.client.append(self.key("tallies"), line * 3000)

    def be_unknown(self) -> None:
        """To whoever lists the queues."""
        self.client.srem(REGISTRY, str(self.queue))

    def leave_tombstone(self) -> None:
        """Of a job that ended long ago."""
        self.client.zadd(self.key("tombstones"), {"long-gone": 1})


def job(name: str, **fields: object) -> Job:
    return Job(name, "t", {}, created_at=1.0, **fields)  # type: ignore[arg-type]


def end(name: str, sequence: int, outcome: Outcome) -> Settlement:
    """Of a job that ``w`` claimed with ``sequence``."""
    return Settlement(name, f"w:{sequence}", outcome)


def fire(at: int, policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW) -> FireRequest:
    return FireRequest("c", "f", at, Verdict.ENQUEUED, policy, job=job(f"c-{at}"))


async def look(stage: Stage) -> None:
    """Role viewer."""
    broker, queue = stage.player, stage.queue
    await stage.hold_run()
    await stage.have_dead(2, "dead1", "dead2")
    await stage.put("ready1", "ready2")
    stage.put_document(b"in intake", "intake")
    stage.put_document(b"in the inbox")
    await stage.staff.beat(queue, Presence("w", datetime.fromtimestamp(0, UTC)), ttl=MINUTE)

    assert (await broker.stats(queue)).states[JobState.DEAD] == 2
    assert (await broker.gather(queue, horizon=MINUTE)).in_flight == 1
    assert len(await broker.workers(queue)) == 1
    assert await broker.tasks(queue) == ()
    await page_through(broker, queue)
    record = await broker.get_job(queue, "dead1")
    assert record is not None
    assert record.error == ERROR
    assert len(await broker.get_jobs(queue, ["dead1", "dead2"], text="dead")) == 2
    assert await broker.ahead_of(queue, "ready1") is not None
    assert (await broker.scaling(queue)).steps == ()
    assert await broker.crontasks(queue) == {}
    assert await broker.cron_record(queue, "c") is not None
    assert len(await broker.fires(queue, "c")) == 2
    await stage.staff.note_act(queue.namespace, ACT)
    assert len((await broker.acts(queue.namespace)).acts) == 1
    assert queue in await broker.queues()
    assert (await broker.statistics(queue))[0].hour.enqueued == 6


async def page_through(broker: RedisBroker, queue: QueueName) -> None:
    """Two dead and two ready jobs or more: one by one, since when, and by their error."""
    for state in (JobState.DEAD, JobState.READY):
        first = await broker.list_jobs(queue, state, limit=1)
        assert (await broker.list_jobs(queue, state, cursor=first.cursor)).ids
    for within in (
        JobFilter(since=datetime.fromtimestamp(1, UTC)),
        JobFilter(error=ERROR.fingerprint),
    ):
        assert len((await broker.list_jobs(queue, JobState.DEAD, within)).ids) == 2
    assert (await broker.list_errors(queue))[0].count == 2


async def produce(stage: Stage) -> None:
    """Role producer."""
    broker, queue = stage.player, stage.queue
    await stage.hold_run()
    await stage.have_dead(2, "dead1", "dead2")
    stage.put_document(b"in intake", "intake")
    stage.have_counted_much()

    stage.be_unknown()
    replace = Unique("k", on_conflict=OnConflict.REPLACE)
    await broker.enqueue(queue, [job("ready1"), job("ready2"), job("later", available_at=FAR)])
    await broker.enqueue(queue, [job("one", unique=replace)])
    await broker.enqueue(queue, [job("two", unique=replace)])
    stage.put_document(b"in the inbox")
    assert await broker.cancel(queue, "c-1000") == "requested"
    assert await broker.cancel(queue, "c-1001") == "cancelled"
    await page_through(broker, queue)
    assert await broker.get_job(queue, "two") is not None
    assert (await broker.stats(queue)).inbox == 2
    assert await broker.replay(queue, ["dead1"]) == ("replayed",)
    assert await broker.purge(queue, ["dead2"]) == ("purged",)
    assert await broker.promote(queue, "later") == "promoted"
    assert await broker.delete(queue, "later") == "deleted"
    await stage.staff.beat(queue, Presence("w", datetime.fromtimestamp(0, UTC)), ttl=MINUTE)
    assert await broker.cordon(queue, "w") == CordonAnswer(1, before=False)
    assert await broker.uncordon(queue, "w") == UncordonAnswer(undone=True, still=False)
    await stage.staff.drain(queue, 1, ["w"], 1, ttl=MINUTE)
    await broker.cordon(queue, "w")
    assert await broker.uncordon(queue, "w") == UncordonAnswer(undone=True, still=True)
    assert await broker.ask_stacks(queue, "w") == 1
    assert await broker.stacks(queue, "w") is None
    assert len(await broker.workers(queue)) == 1
    assert await broker.tasks(queue) == ()
    await stage.staff.leave(queue, "w")
    assert (await broker.statistics(queue))[0].hour.enqueued > 2000
    assert await broker.pause(queue, "a look")
    assert await broker.note_act(queue.namespace, ACT)
    assert (await broker.acts(queue.namespace, before=1)).acts == ()
    assert await broker.resume(queue)
    await stage.staff.put_crontasks(queue, 1, {"c": b"{}"})
    assert await broker.suspend_cron(queue, "c", by="ann", reason="a repair") is not None
    assert await broker.resume_cron(queue, "c") is not None
    past = {800: job("c-800")}
    told = await broker.backfill(queue, "c", past, policy=ConcurrencyPolicy.ALLOW, note="")
    assert told == ("enqueued",)
    stage.client.delete(stage.key("inbox"))
    await broker.enqueue(queue, [job("wakes somebody")])
    assert stage.client.lrange(stage.key("inbox"), 0, -1) == [b"!"]


async def work(stage: Stage) -> None:
    """Role worker."""
    broker, queue = stage.player, stage.queue
    run = await stage.hold_run()
    stage.leave_tombstone()
    stage.have_counted_much()
    stage.client.delete(stage.key("inbox"))

    stage.be_unknown()
    await broker.open_queue(queue)
    await broker.beat(queue, Presence("w", datetime.fromtimestamp(0, UTC)), ttl=MINUTE)
    good, bad = b'{"task":"t","id":"good"}', b"bad"
    stage.put_document(good)
    assert await broker.wait_for_document(queue, MINUTE) == good
    assert await broker.stranded(queue, 10) == (good,)
    assert (await broker.renew(queue, "w", [])).intake == 1
    stage.put_document(bad)
    assert await broker.intake(queue, *sorted_out(good), more=1) == (bad,)
    await broker.intake(queue, *sorted_out(bad), full=True)
    await stage.put("a", "b", "c", "d", "e", "f", "g")
    stage.client.delete(stage.key("inbox"))
    claimed = (await stage.exchange(broker, 2, 7)).claimed
    assert len(claimed) == 7
    assert stage.client.lrange(stage.key("inbox"), 0, -1) == [b"!"]
    renewed = await broker.renew(queue, "w", [(run, "w:1"), ("gone", "w:1")])
    assert (renewed.lost, renewed.cancel) == (("gone",), (run,))
    lease = Lease(claimed[0].id, "w:2")
    assert await broker.once_begin(queue, lease, "k") == OnceAnswer.FIRST
    assert await broker.once_end(queue, lease, "k", ttl=None)
    assert await broker.once_begin(queue, lease, "k") == OnceAnswer.FIRST
    assert await broker.once_end(queue, lease, "k", ttl=MINUTE)
    assert await broker.once_begin(queue, lease, "k") == OnceAnswer.DONE
    notes = [ProgressNote(found.id, "w:2", 1, b'[1,null,""]', b'{"":7}') for found in claimed]
    assert await broker.note_progress(queue, [*notes, ProgressNote("gone", "w:1", 1, b"", b"")])
    assert await broker.checkpoints(queue, claimed[0].id) == {"": 7}
    outcomes = [
        Outcome.complete(b"1"),
        Outcome.retry(ERROR, MINUTE),
        Outcome.release(),
        Outcome.bury(ERROR),
        Outcome.loss(ERROR),
        Outcome.cancelled(),
        Outcome.release_unknown(MINUTE, MINUTE, "unknown"),
    ]
    ends = [end(job.id, 2, how) for job, how in zip(claimed, outcomes, strict=True)]
    reply = await stage.exchange(broker, 3, 1, end(run, 1, Outcome.complete()), *ends)
    assert (reply.refused, len(reply.claimed)) == ((), 1)
    assert await broker.announce(queue, "v1", ["t"]) == 1
    await broker.leave(queue, "w")


def sorted_out(raw: bytes) -> tuple[tuple[AcceptedDocument, ...], tuple[RejectedDocument, ...]]:
    """As the worker's inbox does it."""
    found = read_document(raw, 1.0)
    if isinstance(found, AcceptedDocument):
        return (found,), ()
    return (), (found,)


async def schedule(stage: Stage) -> None:
    """Role scheduler, which is the operator's too."""
    broker, queue = stage.player, stage.queue
    await stage.have_dead(1, "dead1")
    await stage.put("ready1")
    stage.put_document(b"in intake", "intake")
    stage.leave_tombstone()
    stage.have_counted_much()

    stage.be_unknown()
    await broker.open_queue(queue)
    assert queue in await broker.queues()
    term = await broker.take_term(queue)
    term = await broker.lead(queue, "boss", MINUTE) or 0
    assert await broker.lead(queue, "boss", MINUTE) == term
    await broker.configure(queue, term, Durability.ASYNC)
    await broker.note_scaling(queue, term, Scaled(1, 2, 2, "12 waiting"), is_step=True)
    await broker.put_crontasks(queue, term, {"c": b"{}", "d": b"{}"})
    await broker.put_crontasks(queue, term, {"c": b"{}"})
    assert await broker.crontasks(queue) == {"c": {}}
    await broker.admit_cron(queue, term, "c", "f", 900, reset=False)
    for at in (1000, 1001):
        requests = [fire(at, ConcurrencyPolicy.REPLACE)]
        assert await broker.decide_fires(queue, term, requests) == (Verdict.ENQUEUED,)
    assert await broker.cron_record(queue, "c") is not None
    assert await broker.run_now(queue, term + 1, "c", "n", job("c-run-n"))
    stage.client.delete(stage.key("inbox"))
    await broker.drain(queue, term + 1, ["w"], 1, ttl=MINUTE)
    assert stage.client.lrange(stage.key("inbox"), 0, -1) == [b"!"]
    stage.put_document(b"in the inbox")
    assert (await broker.upkeep(queue)).documents == 2
    assert await broker.stranded(queue, 1) == (b"in intake",)
    assert await broker.intake(queue, (), (), more=2) == (b"in the inbox",)
    await broker.intake(queue, *sorted_out(b"in the inbox"), full=True)
    assert (await broker.gather(queue, horizon=MINUTE)).backlog
    assert await broker.workers(queue) == ()
    assert (await broker.stats(queue)).inbox == 1
    await broker.resign(queue, "boss")


Scene = Callable[[Stage], Awaitable[None]]
SCENES: Mapping[str, Scene] = {
    "viewer": look,
    "producer": produce,
    "worker": work,
    "scheduler": schedule,
}
"""A role of the document -> its scene. The role ``inbox`` has a test of its own."""
