"""The claim loop of one queue: settle what ended, claim what can run, in one exchange.

One exchange is under way at a time. One that fails is sent again unchanged, with its sequence,
until Redis answers: outcomes are kept and jobs run on meanwhile. Outcomes are settled at once
when a slot has nothing else to do, else together with others a moment later.
A job is held (and its lease renewed) from the reply that claimed it to the one that settled it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tidework.broker.broker import Broker
from tidework.clock import Clock
from tidework.errors import BrokerError, StaleRequestError
from tidework.loop import Loop
from tidework.model.identity import QueueName
from tidework.model.lease import (
    LEASE,
    ClaimedJob,
    ExchangeReply,
    ExchangeRequest,
    RenewReply,
    Settlement,
)
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.worker.admission import admit
from tidework.worker.backoff import Backoff
from tidework.worker.held import HeldJob
from tidework.worker.journal import UNKNOWN_TASK, Journal
from tidework.worker.slots import SlotPool
from tidework.worker.verdicts import Verdict

SETTLE_WITHIN = 0.01
"""Seconds that an outcome waits for others while no slot waits for it."""
WAIT_AHEAD = 0.5
"""Seconds that a job claimed ahead may wait for a slot before it is given back."""
MOST = 500
"""Jobs that one exchange settles or claims at most."""
CORDONED_FOR = 1.0
"""Seconds after which a cordoned worker asks whether it may claim again."""
SHORTEST_DUE = 0.02
"""Seconds between two exchanges that only a due time asks for."""
_LONG = 3600.0


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What the consumers of a worker have in common.

    specs: the application's tasks, kept up to date by their owner
    hard_timeout, unknown_grace: seconds; of every job, and how long an unknown task is kept
    lease: of claimed jobs
    """

    incarnation: str
    specs: Mapping[str, TaskSpec]
    hard_timeout: float
    unknown_grace: float
    lease: timedelta = LEASE


@dataclass(slots=True)
class _UnderWay:
    """An exchange that was not answered yet; ``granted`` slots are reserved for it."""

    request: ExchangeRequest
    granted: int
    resend_at: float = 0.0


class Consumer:
    """One queue's jobs, over the worker's slots.

    index:    place of the queue among the worker's
    starved:  set while the last exchange found fewer jobs than it could take
    cordoned: nothing is claimed for this worker for now, and it takes no markers from others
    paused:   nothing is claimed for anybody until somebody resumes the queue: a marker tells
    documents_seen: unvalidated documents lay in the queue at the last look
    """

    def __init__(
        self,
        queue: QueueName,
        index: int,
        broker: Broker,
        pool: SlotPool,
        facts: WorkerFacts,
        journal: Journal,
        clock: Clock,
    ) -> None:
        self.queue = queue
        self.index = index
        self.waiting: deque[HeldJob] = deque()
        self.held: dict[str, HeldJob] = {}
        self.starved = asyncio.Event()
        self.cordoned = False
        self.paused = False
        self.documents_seen = False
        self.draining = False
        self.loop = Loop(f"consumer of {queue}", self._tick)
        self._broker = broker
        self._pool = pool
        self._facts = facts
        self._journal = journal
        self._clock = clock
        self._backoff = Backoff()
        self._sequence = 0
        self._under_way: _UnderWay | None = None
        self._outbox: list[Settlement] = []
        self._served: dict[str, tuple[int, float]] = {}
        self._settle_at = 0.0
        self._due_at: float | None = None
        self._work = True
        self._woken = False
        self._moved = asyncio.Event()

    @property
    def hungry(self) -> bool:
        """Of JobSource."""
        return not (self.draining or self.cordoned or self.paused or self.starved.is_set())

    def on_capacity(self) -> None:
        """Of JobSource."""
        if self._outbox:
            self._settle_at = 0.0
            self.loop.nudge()
        elif self.hungry or (self._work and not self.draining):
            # Work may be known since a time when no slot was free, a cordon's end among it.
            self._work = True
            self.loop.nudge()

    def on_work(self, *, woken: bool = False) -> None:
        """There may be work; ``woken``: by a marker, which is to be removed."""
        self._work = True
        self._woken |= woken
        if woken:
            self.starved.clear()
        self.loop.nudge()

    def on_renewed(self, reply: RenewReply, asked: Sequence[tuple[str, str]]) -> None:
        """The leases ``asked`` for were renewed; some were lost, some jobs are to be cancelled."""
        self._note_due(reply.next_due)
        self._note_cordon(cordoned=reply.draining)
        self._note_pause(paused=reply.paused)
        self.documents_seen |= reply.intake > 0
        tokens = dict(asked)
        for job in self._unended(reply.lost, tokens):
            self._let_go(job)
        for job in self._unended(reply.cancel, tokens):
            if self._withdraw(job, Verdict.CANCELLED):
                self.settle(job, Outcome.cancelled(), None)
        self.loop.nudge()

    def drain(self) -> None:
        """Claim no more and give back what has not started."""
        self.draining = True
        self.starved.clear()
        unstarted = list(self.waiting)
        self.waiting.clear()
        self.take_back(unstarted)
        self.loop.nudge()

    def settle(self, job: HeldJob, outcome: Outcome, seconds: float | None) -> None:
        """Of JobSource."""
        job.outcome = outcome
        if not self._outbox:
            self._settle_at = self._clock.monotonic() + SETTLE_WITHIN
            self.loop.nudge()
        self._outbox.append(Settlement(job.id, job.claimed.token, outcome))
        if seconds is not None:
            count, total = self._served.get(job.task, (0, 0.0))
            self._served[job.task] = (count + 1, total + seconds)
        self._journal.note_ended(job, outcome, seconds)
        self._moved.set()

    def forget(self, job: HeldJob) -> None:
        """Of JobSource."""
        if self.held.get(job.id) is job:
            del self.held[job.id]
        self._moved.set()

    def take_back(self, jobs: Sequence[HeldJob]) -> None:
        """Of JobSource."""
        if self.draining:
            for job in jobs:
                self.settle(job, Outcome.release(), None)
            self._settle_at = 0.0
        else:
            self.waiting.extendleft(reversed(jobs))
            self.loop.nudge()

    def leases(self) -> list[tuple[str, str]]:
        """Job id and lease token of every held job."""
        return [(job.id, job.claimed.token) for job in self.held.values()]

    async def wait_quiet(self) -> None:
        """Wait until no job waits or runs; their outcomes may still be unsettled."""
        while any(job.outcome is None for job in self.held.values()):
            self._moved.clear()
            await self._moved.wait()

    async def wait_settled(self) -> None:
        """Wait until nothing is held and every request was answered."""
        while self.held or self._outbox or self._under_way or self._woken:
            self._moved.clear()
            await self._moved.wait()

    async def _tick(self) -> timedelta:
        now = self._clock.monotonic()
        if self._under_way is None:
            self._give_up_waiting(now)
            self._under_way = self._compose(now)
            if self._under_way is None:
                return self._rest(now)
        elif now < self._under_way.resend_at:
            return timedelta(seconds=self._under_way.resend_at - now)
        sent = self._under_way
        began = self._clock.monotonic()
        try:
            reply = await self._broker.exchange(self.queue, sent.request)
        except StaleRequestError as error:
            # Ours is the only hand that counts the sequence: an answer of another life.
            self._journal.note_redis_error(error, "exchange")
            self._outbox[:0] = sent.request.settlements
            self._close_exchange(sent)
            return timedelta(0)
        except BrokerError as error:
            delay = self._backoff.next()
            self._journal.note_redis_error(error, "exchange, to be sent again")
            sent.resend_at = self._clock.monotonic() + delay.total_seconds()
            return delay
        self._backoff.reset()
        if self._clock.monotonic() - began >= self._facts.lease.total_seconds():
            # We stood still meanwhile. What was claimed may be somebody else's: the same request
            # again brings back what is ours.
            return timedelta(0)
        self._close_exchange(sent)
        self._take_in(sent.request, reply)
        return self._rest(self._clock.monotonic())

    def _compose(self, now: float) -> _UnderWay | None:
        """The next exchange, if there is a reason for one."""
        if self._due_at is not None and self._due_at <= now:
            self._due_at = None
            self._work = True
        settle = bool(self._outbox) and self._settle_at <= now
        granted = ahead = 0
        if not self.draining and (self._work or settle or self._woken):
            granted = self._pool.dispatch.reserve(self)
            ahead = self._pool.dispatch.ahead_room(self) if self._work else 0
        want = min(MOST, granted + ahead)
        if not (settle or self._woken or (self._work and want)):
            return None
        self._sequence += 1
        request = ExchangeRequest(
            incarnation=self._facts.incarnation,
            sequence=self._sequence,
            want=want,
            settlements=tuple(self._outbox[:MOST]),
            woken=self._woken,
            served=self._served,
        )
        del self._outbox[:MOST]
        self._served = {}
        self._woken = False
        return _UnderWay(request, granted)

    def _close_exchange(self, answered: _UnderWay) -> None:
        self._under_way = None
        self._pool.dispatch.unreserve(answered.granted)
        self._moved.set()

    def _take_in(self, request: ExchangeRequest, reply: ExchangeReply) -> None:
        refused = set(reply.refused)
        for settled in request.settlements:
            job = self.held.get(settled.id)
            # A result of a lease that was lost says nothing about a later one of ours.
            if job is not None and job.claimed.token == settled.token:
                del self.held[settled.id]
            if settled.id in refused:
                task = UNKNOWN_TASK if job is None else job.task
                self._journal.note_lease_lost(settled.id, task)
        self._note_due(reply.next_due)
        self.documents_seen |= reply.intake > 0
        self._work = reply.backlog > 0
        if len(reply.claimed) < request.want:
            self.starved.set()
        else:
            self.starved.clear()
        self._note_cordon(cordoned=reply.draining)
        self._note_pause(paused=reply.paused)
        for claimed in reply.claimed:
            self._hold(claimed)
        self._pool.dispatch.run()
        self._pool.dispatch.offer()

    def _hold(self, claimed: ClaimedJob) -> None:
        found = admit(
            claimed,
            self._facts.specs,
            now=self._clock.now().timestamp(),
            hard_timeout=self._facts.hard_timeout,
            unknown_grace=self._facts.unknown_grace,
        )
        if isinstance(found, Outcome):
            self._journal.note_unfit(claimed, found)
            self._outbox.append(Settlement(claimed.id, claimed.token, found))
            self._settle_at = 0.0
            return
        before = self.held.get(claimed.id)
        if before is not None and before.outcome is None:
            self._let_go(before)  # claimed anew: the lease that we had is lost
        now = self._clock.monotonic()
        job = HeldJob(claimed, self, found.spec, found.timeout, found.max_attempts, now)
        self.held[job.id] = job
        self._journal.note_claimed(job.task)
        if self.draining:
            self.take_back([job])
        else:
            self.waiting.append(job)

    def _give_up_waiting(self, now: float) -> None:
        """Release what waited too long: the jobs before it are slower than they were."""
        while self.waiting and self.waiting[0].claimed_at + WAIT_AHEAD <= now:
            self.settle(self.waiting.popleft(), Outcome.release(), None)
            self._settle_at = 0.0

    def _rest(self, now: float) -> timedelta:
        """How long nothing has to be done, unless something happens."""
        times = [_LONG + now]
        if self._outbox:
            times.append(self._settle_at)
        if self.waiting:
            times.append(self.waiting[0].claimed_at + WAIT_AHEAD)
        if self._due_at is not None:
            times.append(self._due_at)
        if self._woken:
            times.append(now)
        return timedelta(seconds=max(0.0, min(times) - now))

    def _note_due(self, wait: timedelta | None) -> None:
        if wait is None:
            self._due_at = None
        else:
            seconds = max(SHORTEST_DUE, wait.total_seconds())
            self._due_at = self._clock.monotonic() + seconds

    def _note_cordon(self, *, cordoned: bool) -> None:
        if self.cordoned and not cordoned:
            self._work = True
        self.cordoned = cordoned
        if cordoned:
            self._work = False
            self.starved.clear()
            self._due_at = self._clock.monotonic() + CORDONED_FOR

    def _note_pause(self, *, paused: bool) -> None:
        if paused != self.paused:
            self._journal.note_pause(paused=paused)
        if self.paused and not paused:
            self._work = True
        elif paused:
            self._work = False
        self.paused = paused

    def _unended(self, ids: Sequence[str], tokens: Mapping[str, str]) -> list[HeldJob]:
        """Held jobs of these ids whose outcome is open: an exchange tells of the others.

        tokens: id -> lease token that was asked about; since then we may have claimed it anew
        """
        found = [self.held[job_id] for job_id in ids if job_id in self.held]
        return [job for job in found if job.outcome is None and job.claimed.token == tokens[job.id]]

    def _let_go(self, job: HeldJob) -> None:
        """Its lease is lost: the job is not ours to run."""
        self._journal.note_lease_lost(job.id, job.task)
        if self._withdraw(job, Verdict.LEASE_LOST):
            self.forget(job)

    def _withdraw(self, job: HeldJob, verdict: Verdict) -> bool:
        """Keep the job from running (on). True if it had not started."""
        if job in self.waiting:
            self.waiting.remove(job)
            return True
        return self._pool.stop_job(job, verdict)
