"""The claim loop of one queue: settle what ended, claim what can run, in one exchange.

One exchange is under way at a time. One that fails is sent again unchanged, with its sequence,
until Redis answers: outcomes are kept and jobs run on meanwhile. Outcomes are settled at once
when a slot has nothing else to do, else together with others a moment later.
A job is held (and its lease renewed) from the reply that claimed it to the one that settled it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from tidework.backoff import Backoff
from tidework.broker.broker import Claims
from tidework.clock import Clock
from tidework.errors import BrokerError, StaleRequestError
from tidework.logs import UNKNOWN_TASK
from tidework.loop import Loop
from tidework.model.identity import QueueName
from tidework.model.lease import ClaimedJob, ExchangeReply, ExchangeRequest, RenewReply, Settlement
from tidework.model.outcome import Outcome
from tidework.worker.held import HeldJob, StopReason, unended
from tidework.worker.places.claims import NO_ROOM
from tidework.worker.places.outcomes import LEFT
from tidework.worker.places.slots import SlotPool
from tidework.worker.queue.facts import WorkerFacts
from tidework.worker.queue.job_log import JobLog
from tidework.worker.queue.last_chance import keep_apart
from tidework.worker.queue.outbox import Outbox, UnderWay
from tidework.worker.queue.progress_writer import ProgressWriter
from tidework.worker.queue.waiting import Waiting, outcome_of_late

MOST = 500
"""Jobs that one exchange settles or claims at most."""
CORDONED_FOR = 1.0
"""Seconds after which a cordoned worker asks whether it may claim again."""
SHORTEST_DUE = 0.02
"""Seconds between two exchanges that only a due time asks for."""


class Consumer:
    """One queue's jobs, over the worker's slots.

    index:    place of the queue among the worker's
    starved:  set while the last exchange found fewer jobs than it could take
    cordoned: nothing is claimed for this worker for now, and it takes no markers from others
    paused:   nothing is claimed for anybody until somebody resumes the queue: a marker tells
    documents_seen: unvalidated documents lay in the queue at the last look
    on_documents: called when that turns true
    on_asked: called when somebody waits for the worker's stacks
    """

    def __init__(
        self,
        queue: QueueName,
        index: int,
        broker: Claims,
        pool: SlotPool,
        facts: WorkerFacts,
        job_log: JobLog,
        clock: Clock,
    ) -> None:
        self.queue = queue
        self.index = index
        self.held: dict[str, HeldJob] = {}
        self.starved = asyncio.Event()
        self.cordoned = False
        self.paused = False
        self.documents_seen = False
        self.on_documents: Callable[[], None] = lambda: None
        self.draining = False
        self.on_asked: Callable[[], None] = lambda: None
        self.notes = ProgressWriter(queue, broker, job_log, clock)
        self.loop = Loop(f"consumer of {queue}", self._tick)
        self._broker = broker
        self._pool = pool
        self._facts = facts
        self._waiting = Waiting()
        self.lines = self._waiting.lines
        self._job_log = job_log
        self._clock = clock
        self._backoff = Backoff()
        self._sequence = 0
        self._under_way: UnderWay | None = None
        self._outbox = Outbox()
        self._due_at: float | None = None
        self._work = True
        self._woken = False
        self._moved = asyncio.Event()

    @property
    def hungry(self) -> bool:
        if self.draining or self.cordoned or self.paused or self._under_way is not None:
            return False
        return not self.starved.is_set()

    @property
    def wants(self) -> bool:
        # Work may be known since a time when there was no room, a cordon's end among it.
        return self.hungry or (self._work and not self.draining and self._under_way is None)

    @property
    def unsettled(self) -> bool:
        return bool(self._outbox)

    def on_capacity(self) -> None:
        if self._outbox:
            self._outbox.hurry()
            self.loop.nudge()
        elif self.wants:
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
        self._note_signs(reply, overtaken=True)
        tokens = dict(asked)
        for job in unended(self.held, reply.lost, tokens):
            self._drop(job)
        for job in unended(self.held, reply.cancel, tokens):
            if self._withdraw(job, StopReason.CANCELLED):
                self.settle(job, Outcome.cancelled("it had not begun"), None)
        self.loop.nudge()

    def drain(self) -> None:
        """Claim no more and release what has not started."""
        self.draining = True
        self.starved.clear()
        self.take_back(self._waiting.clear())
        self.loop.nudge()

    def settle(self, job: HeldJob, outcome: Outcome, seconds: float | None) -> None:
        job.outcome = outcome
        settlement = Settlement(job.id, job.claimed.token, outcome)
        if self._outbox.add(settlement, self._clock.monotonic()):
            self._pool.claims.note_unsettled(self)
            self.loop.nudge()
        if seconds is not None:
            self._outbox.note_served(job.task, seconds)
        self._job_log.note_ended(job, outcome, seconds)
        self._moved.set()

    def forget(self, job: HeldJob) -> None:
        if self.held.get(job.id) is job:
            del self.held[job.id]
        self._moved.set()

    def take_back(self, jobs: Sequence[HeldJob]) -> None:
        if self.draining:
            for job in jobs:
                self.settle(job, LEFT, None)
            self._outbox.hurry()
        else:
            self._waiting.put_back(jobs)
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
            self._give_up(self._waiting.take_late(now))
            self._under_way = self._compose(now)
            if self._under_way is None:
                return self._rest(now)
        elif now < self._under_way.resend_at:
            return timedelta(seconds=self._under_way.resend_at - now)
        sent = self._under_way
        began = self._clock.monotonic()
        try:
            await self.notes.write_last(sent.request.settlements)
            reply = await self._broker.exchange(self.queue, sent.request)
        except StaleRequestError as error:
            # Ours is the only hand that counts the sequence: an answer of another life.
            self._job_log.note_redis_error(error, "exchange")
            self._outbox.put_back(sent.request.settlements)
            self._close_exchange(sent)
            return timedelta(0)
        except BrokerError as error:
            delay = self._backoff.next()
            self._job_log.note_redis_error(error, "exchange, to be sent again")
            # Other queues may have their servers; what this one claims may find the room taken.
            self._give_room_back(sent)
            self._pool.claims.offer()
            sent.resend_at = self._clock.monotonic() + delay.total_seconds()
            return delay
        self._backoff.reset()
        self._job_log.note_redis_answer()
        if self._clock.monotonic() - began >= self._facts.lease.total_seconds():
            # We stood still meanwhile. What was claimed may be somebody else's: the same request
            # again brings back what is ours.
            return timedelta(0)
        self._close_exchange(sent)
        self._take_in(sent.request, reply)
        return self._rest(self._clock.monotonic())

    def _compose(self, now: float) -> UnderWay | None:
        """The next exchange, if there is a reason for one."""
        if self._due_at is not None and self._due_at <= now:
            self._due_at = None
            self._work = True
        settle = (at := self._outbox.due_at()) is not None and at <= now
        grant = NO_ROOM
        if not self.draining and (self._work or settle or self._woken):
            grant = self._pool.claims.reserve(self, ahead=self._work)
        if not (settle or self._woken or (self._work and grant.due)):
            self._pool.claims.close(grant)
            return None
        self._sequence += 1
        settlements, served = self._outbox.take(MOST)
        request = ExchangeRequest(
            incarnation=self._facts.incarnation,
            sequence=self._sequence,
            want=min(MOST, grant.want),
            settlements=settlements,
            woken=self._woken,
            served=served,
        )
        self._woken = False
        return UnderWay(request, grant)

    def _close_exchange(self, answered: UnderWay) -> None:
        self._under_way = None
        self._give_room_back(answered)
        self._moved.set()

    def _give_room_back(self, sent: UnderWay) -> None:
        self._pool.claims.close(sent.grant)
        sent.grant = NO_ROOM

    def compose_behind_wait(self) -> ExchangeRequest | None:
        """The next exchange that is sent behind a wait, see behind_wait.py. None: not now."""
        room = self._pool.claims.room_of(self)
        if self.draining or self.cordoned or self.paused or not room:
            return None
        self._sequence += 1
        return ExchangeRequest(
            self._facts.incarnation, self._sequence, min(MOST, room), woken=True, most_held=room
        )

    def take_in_behind_wait(self, reply: ExchangeReply) -> None:
        """It was answered. Replies to later exchanges may have come before."""
        self._note_signs(reply, overtaken=True)
        if self._due_at is not None:
            self.loop.nudge()
        self._hold_all(reply.claimed)
        # Other queues may have taken the places meanwhile: whoever has one is to have the job.
        surplus = self._waiting.take_of(reply.claimed) if len(self._pool.sources) > 1 else []
        self._give_up(surplus)
        if reply.backlog or surplus:
            self.starved.clear()
            self.on_work()

    def _take_in(self, request: ExchangeRequest, reply: ExchangeReply) -> None:
        refused = set(reply.refused)
        for settled in request.settlements:
            job = self.held.get(settled.id)
            # A result of a lease that was lost says nothing about a later one of ours.
            if job is not None and job.claimed.token == settled.token:
                del self.held[settled.id]
            if settled.id in refused:
                task = UNKNOWN_TASK if job is None else job.task
                self._job_log.note_lease_lost(settled.id, task)
        self._work = reply.backlog > 0
        if len(reply.claimed) < request.want:
            self.starved.set()
        else:
            self.starved.clear()
        self._note_signs(reply)
        self._hold_all(reply.claimed)
        self._pool.claims.offer()

    def _hold_all(self, claimed: Sequence[ClaimedJob]) -> None:
        apart = keep_apart(claimed, self._pool.sources, self._facts.poison_cap)
        for found in claimed:
            self._hold(found, apart.get(found.id))
        self._job_log.tell_claimed(claimed, self.held)
        self._pool.run()

    def _hold(self, claimed: ClaimedJob, release: Outcome | None) -> None:
        now, found = self._clock.monotonic(), self._facts.admit(claimed)
        if isinstance(found, Outcome):
            self._job_log.note_unfit(claimed, found)
            self._outbox.add(Settlement(claimed.id, claimed.token, found), now)
            self._outbox.hurry()
            return
        before = self.held.get(claimed.id)
        if before is not None and before.outcome is None:
            self._drop(before)  # claimed again: the lease that we had is lost
        line = self._facts.line_of(claimed)
        job = HeldJob(claimed, self, found.spec, found.timeout, found.max_attempts, now, line)
        self.held[job.id] = job
        self._job_log.note_claimed(job.task)
        if self.draining:
            self.take_back([job])
        elif release is not None:
            self.settle(job, release, None)
            self._outbox.hurry()
        else:
            self._waiting.add(job)

    def _give_up(self, jobs: Sequence[HeldJob]) -> None:
        """Release these: nobody here has a place for them."""
        for job in jobs:
            self.settle(job, outcome_of_late(job), None)
            self._outbox.hurry()

    def _rest(self, now: float) -> timedelta:
        """How long nothing has to be done, unless something happens."""
        if self._woken:
            return timedelta(0)
        times = [now + 3600.0, self._waiting.late_at(), self._outbox.due_at(), self._due_at]
        return timedelta(seconds=max(0.0, min(at for at in times if at is not None) - now))

    def _note_signs(self, reply: ExchangeReply | RenewReply, *, overtaken: bool = False) -> None:
        """What every reply tells of the queue; ``overtaken``: maybe by those to later requests."""
        self._note_due(reply.next_due, self._due_at if overtaken else None)
        if reply.intake and not self.documents_seen:
            self.documents_seen = True
            self.on_documents()
        self._note_cordon(cordoned=reply.cordoned)
        self._note_pause(paused=reply.paused)
        if reply.stacks_asked:
            self.on_asked()

    def _note_due(self, wait: timedelta | None, known: float | None) -> None:
        self._due_at = known
        if wait is not None:
            at = self._clock.monotonic() + max(SHORTEST_DUE, wait.total_seconds())
            self._due_at = at if known is None else min(at, known)

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
            self._job_log.note_pause(paused=paused)
        if self.paused and not paused:
            self._work = True
        elif paused:
            self._work = False
        self.paused = paused

    def _drop(self, job: HeldJob) -> None:
        """Its lease is lost: the job is not ours to run."""
        self._job_log.note_lease_lost(job.id, job.task, job)
        if self._withdraw(job, StopReason.LEASE_LOST):
            self.forget(job)

    def _withdraw(self, job: HeldJob, stop_reason: StopReason) -> bool:
        """Keep the job from running (on). True if it had not started."""
        return self._waiting.remove(job) or self._pool.stop_job(job, stop_reason)
