"""The CronTasks of one queue, under one term: mirrored, admitted, fired, armed again.

What Redis says decides: an entry's watermark comes from its record, and after any error, refusal
or change of term all records are read again, so that a lost reply neither loses nor doubles a
fire. Work comes in bounded rounds; due fires go before everything that can wait.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from tidework.broker.broker import Schedules
from tidework.clock import Clock
from tidework.logs import queue_fields
from tidework.model.fire import CronRecord, FireAnswer, FireRequest, Verdict, fire_id
from tidework.model.identity import QueueName
from tidework.scheduler.agenda import Agenda, CronEntry, Phase
from tidework.scheduler.counters import SchedulerCounters
from tidework.scheduler.due import PlannedFire, from_unix, is_long_gap, plan_fires, to_unix
from tidework.scheduler.each import for_each
from tidework.scheduler.spec import CronSpec, fire_job, manual_job

logger = logging.getLogger(__name__)

_ADMITTED_PER_ROUND = 256
_ADMITTED_AT_ONCE = 4
_DUE_PER_ROUND = 2000
_CATCHING_UP_PER_ROUND = 5
_FIRES_PER_ENTRY = 100
_FIRES_PER_REQUEST = 250
_REQUESTS_AT_ONCE = 3  # while Redis works on one, the next is being written

_FIRING = frozenset({Phase.WAIT, Phase.CATCH_UP})

_Planned = tuple[CronEntry, PlannedFire]


class QueueScheduler:
    """``accept`` what the registry says, ``follow`` the leadership, then ``serve`` and ``arm``."""

    def __init__(
        self, queue: QueueName, broker: Schedules, clock: Clock, counters: SchedulerCounters
    ) -> None:
        self.queue = queue
        self.term: int | None = None
        self._last_term = 0
        self._led_since = clock.now()
        self._broker = broker
        self._clock = clock
        self._counters = counters
        self._agenda = Agenda()
        self._documents: Mapping[str, bytes] = {}
        self._mirrored = False

    @property
    def cleared(self) -> bool:
        """Has the last CronTask left, from the mirror too?"""
        return self._mirrored and not self._documents

    def accept(self, specs: Mapping[str, CronSpec], now: datetime) -> None:
        """Fire these from now on and no others. What did not change goes on undisturbed."""
        for uid in [*self._agenda.entries]:
            if uid not in specs:
                self._agenda.remove(uid)
        for uid, spec in specs.items():
            entry = self._agenda.entries.get(uid)
            if entry is None:
                entry = CronEntry(spec, spec.fingerprint, changed=now)
                self._agenda.entries[uid] = entry
            elif entry.spec == spec:
                entry.spec = spec
                continue
            else:
                self._change(entry, spec, now)
            self._agenda.put(entry, Phase.IDLE if self.term is None else Phase.ADMIT)
        documents = {uid: spec.document for uid, spec in specs.items()}
        if documents != self._documents:
            self._documents = documents
            self._mirrored = False

    def _change(self, entry: CronEntry, spec: CronSpec, now: datetime) -> None:
        if entry.spec.suspend and not spec.suspend:
            entry.resumed = now
        if entry.fingerprint != spec.fingerprint:
            entry.fingerprint = spec.fingerprint
            entry.changed = now
            entry.first = entry.gap = None
        entry.spec = spec

    def follow(self, term: int | None) -> None:
        """Serve under this term; None: stand by."""
        if term == self.term:
            return
        self.term = term
        self._mirrored = False
        if term is not None and term != self._last_term:
            self._last_term = term
            self._led_since = self._clock.now()
        self._agenda.put_all(Phase.IDLE if term is None else Phase.ADMIT)

    async def serve(self) -> None:
        """One bounded round. Raises BrokerError, after which the term has to be dropped or
        ``follow`` be called anew: then all records are read again."""
        term = self.term
        if term is None:
            return
        await self._fire_due(term)
        if not self._mirrored:
            # Before any admission: the mirror says which records are to be forgotten one day.
            await self._broker.put_crontasks(self.queue, term, self._documents)
            self._mirrored = True
        admitting = self._agenda.take(Phase.ADMIT, _ADMITTED_PER_ROUND)
        if admitting:

            async def admit(entry: CronEntry) -> None:
                await self._admit(term, entry)

            await for_each(admitting, admit, at_once=_ADMITTED_AT_ONCE)

    def arm(self, limit: int) -> int:
        """Find the next fire time of at most ``limit`` entries; their number."""
        arming = self._agenda.take(Phase.ARM, limit)
        for entry in arming:
            after = entry.changed if entry.watermark is None else from_unix(entry.watermark)
            entry.first = entry.spec.rules.next(after)
            self._agenda.put(entry, Phase.DORMANT if entry.first is None else Phase.WAIT)
        return len(arming)

    def wait(self, now: datetime) -> timedelta | None:
        """Until there is something to do; None: nothing is known."""
        if self.term is None:
            return None
        if self._agenda.has_work() or not self._mirrored:
            return timedelta(0)
        due = self._agenda.next_due()
        return None if due is None else max(due - now, timedelta(0))

    async def _admit(self, term: int, entry: CronEntry) -> None:
        """Bring record and entry together; then what was asked for by hand."""
        spec = entry.spec
        record = await self._broker.cron_record(self.queue, spec.uid)
        start = self._start(entry, record)
        if start is not None:
            reset = record is not None and record.fingerprint == entry.fingerprint
            record = await self._broker.admit_cron(
                self.queue, term, spec.uid, entry.fingerprint, start, reset=reset
            )
        if record is None:
            raise AssertionError("a CronTask without a record is always admitted")
        await self._run_now(term, entry, record)
        known = entry.watermark == record.watermark and entry.first is not None
        entry.watermark = record.watermark
        if spec.suspend or _runs_used_up(spec, record):
            self._agenda.put(entry, Phase.DORMANT)
        else:
            self._agenda.put(entry, Phase.WAIT if known else Phase.ARM)

    def _start(self, entry: CronEntry, record: CronRecord | None) -> int | None:
        """The watermark to start from, None where the record stands as it is."""
        now = self._clock.now()
        if record is None:
            # Lost, or never made. What this process saw decided counts too.
            seen = entry.spec.created if entry.watermark is None else from_unix(entry.watermark)
            known = (seen, entry.spec.created, entry.spec.last_scheduled, entry.resumed)
            last = max(moment for moment in known if moment is not None)
            return to_unix(min(last, now))
        if record.fingerprint != entry.fingerprint:
            # Not now: after a lost attempt that would swallow the fires since the first one.
            return to_unix(max(entry.changed, self._led_since))
        # Suspended and resumed while Redis was away: the record never learned of it.
        if entry.resumed is not None and record.watermark < to_unix(entry.resumed):
            return to_unix(entry.resumed)
        return None

    async def _run_now(self, term: int, entry: CronEntry, record: CronRecord) -> None:
        spec = entry.spec
        if not spec.run_now or spec.run_now == record.last_run_now:
            return
        job = manual_job(spec, spec.run_now, self._clock.now())
        if await self._broker.run_now(self.queue, term, spec.uid, spec.run_now, job):
            self._counters.manual_runs += 1
            extra = {"event": "run_by_hand", **_fields_of(spec), "job_id": job.id}
            logger.info("CronTask %s runs now, as asked for", spec.name, extra=extra)

    async def _fire_due(self, term: int) -> None:
        now = self._clock.now()
        taken: list[CronEntry] = []
        for entry in self._agenda.take_due(now, _DUE_PER_ROUND):
            if entry.first is not None and is_long_gap(entry.first, now):
                self._agenda.put(entry, Phase.CATCH_UP)
            else:
                taken.append(entry)
        taken += self._agenda.take(Phase.CATCH_UP, _CATCHING_UP_PER_ROUND)
        plans = [(entry, self._plan(entry, now)) for entry in taken]

        async def decide(planned: Sequence[_Planned]) -> None:
            await self._decide(term, planned, now)

        # A request holds one fire of each CronTask: were one refused and a later one of the same
        # CronTask written, the watermark would pass the refused one, which had no verdict then.
        for turn in range(max((len(fires) for _, fires in plans), default=0)):
            planned = [
                (entry, fires[turn])
                for entry, fires in plans
                if turn < len(fires) and entry.phase in _FIRING
            ]
            requests = [
                planned[start : start + _FIRES_PER_REQUEST]
                for start in range(0, len(planned), _FIRES_PER_REQUEST)
            ]
            await for_each(requests, decide, at_once=_REQUESTS_AT_ONCE)
        for entry in taken:
            if entry.phase in _FIRING:
                self._agenda.put(entry, Phase.ARM)

    def _plan(self, entry: CronEntry, now: datetime) -> tuple[PlannedFire, ...]:
        if entry.first is None or entry.first > now:
            # Due once, and not any more: the clock was set back.
            return ()
        plan = plan_fires(entry.spec.rules, entry.first, now, limit=_FIRES_PER_ENTRY, gap=entry.gap)
        if plan.gap is not None and plan.gap != entry.gap:
            logger.warning(
                "CronTask %s: fires since %s are late; its catchUp %s decides which still run",
                entry.spec.name,
                entry.first.isoformat(),
                entry.spec.rules.catch_up.mode,
                extra={"event": "fires_late", **_fields_of(entry.spec)},
            )
        entry.gap = plan.gap
        return plan.fires

    async def _decide(self, term: int, planned: Sequence[_Planned], now: datetime) -> None:
        requests = [_request(entry, fire, now) for entry, fire in planned]
        answers = await self._broker.decide_fires(self.queue, term, requests)
        visible = self._clock.now()
        for (entry, fire), answer in zip(planned, answers, strict=True):
            if isinstance(answer, Verdict):
                self._note_verdict(entry, fire, answer, visible)
            elif answer is FireAnswer.EXHAUSTED:
                self._agenda.put(entry, Phase.DORMANT)
            else:
                # The record is ahead of us, of another schedule, or gone; or a person has it
                # suspended: then the watermark has passed the fire.
                self._agenda.put(entry, Phase.ADMIT)

    def _note_verdict(
        self, entry: CronEntry, fire: PlannedFire, verdict: Verdict, visible: datetime
    ) -> None:
        entry.watermark = to_unix(fire.at)
        entry.first = None
        self._counters.verdicts[verdict] += 1
        if verdict is Verdict.ENQUEUED and entry.gap is None:
            self._counters.lateness.observe(visible - fire.at)
        spec = entry.spec
        job_id = fire_id(spec.uid, to_unix(fire.at)) if verdict is Verdict.ENQUEUED else ""
        for listener in self._counters.listeners:
            listener(spec.name, verdict, fire.at, job_id)
        # Thousands may be missed in one gap, of which one warning told already.
        level = logging.INFO if entry.gap is None else logging.DEBUG
        if job_id:
            extra = {
                "event": "fired",
                **_fields_of(spec),
                "job_id": job_id,
                "fire": fire.at.isoformat(),
            }
            logger.info("CronTask %s fired", spec.name, extra=extra)
        elif logger.isEnabledFor(level):
            at, what = fire.at.isoformat(), verdict.value
            extra = {"event": "fire_not_enqueued", **_fields_of(spec), "fire": at, "verdict": what}
            logger.log(level, "CronTask %s: fire %s %s", spec.name, at, what, extra=extra)


def _fields_of(spec: CronSpec) -> dict[str, str]:
    return queue_fields(spec.queue) | {"crontask": spec.name, "task": spec.task}


def _request(entry: CronEntry, fire: PlannedFire, now: datetime) -> FireRequest:
    spec = entry.spec
    job = None
    if fire.wanted is Verdict.ENQUEUED:
        job = fire_job(spec, fire.at, now, late=is_long_gap(fire.at, now))
    return FireRequest(
        uid=spec.uid,
        fingerprint=entry.fingerprint,
        fire=to_unix(fire.at),
        wanted=fire.wanted,
        policy=spec.policy,
        max_runs=spec.max_runs,
        job=job,
    )


def _runs_used_up(spec: CronSpec, record: CronRecord) -> bool:
    return spec.max_runs is not None and record.verdicts[Verdict.ENQUEUED] >= spec.max_runs
