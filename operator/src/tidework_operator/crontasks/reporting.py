"""Telling what becomes of a CronTask: status, conditions, events.

Written on change only, and per CronTask at most every few seconds. The API server being away stops
no fire: reporting rests for a moment and goes on from what is true then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from tidework.clock import Clock
from tidework.errors import BrokerError
from tidework.logs import queue_fields
from tidework.manifests import ManualRun
from tidework.model.backlog import JobRecord
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, JobState
from tidework.scheduler.spec import CronSpec, manual_job
from tidework.scheduler.status import CronStatus
from tidework_operator.cluster import Cluster, ClusterError, Kind, Object
from tidework_operator.conditions import Condition, find_condition
from tidework_operator.crontasks.documents import SCHEDULE_VALID
from tidework_operator.crontasks.judgement import QUEUE_FOUND, judge
from tidework_operator.crontasks.status import MAX_NONCE, Runs, patch_of, wanted_status
from tidework_operator.crontasks.watched import Watched
from tidework_operator.events import Events

logger = logging.getLogger(__name__)

WRITE_EVERY = timedelta(seconds=5)
LOOK_EVERY = timedelta(seconds=60)

_BETWEEN_LEADERS_S = 2.0
_AFTER_DUE_S = 1.0
_REST_S = 5.0
_GONE, _REFUSED = 404, 422
_TOLD = {SCHEDULE_VALID: "ScheduleInvalid", QUEUE_FOUND: "QueueMissing"}


class StatusSource(Protocol):
    """The Scheduler, as far as it is asked here."""

    async def status(self, uid: str) -> CronStatus | None:
        """A CronTask as it stands; None for an unknown uid."""


class JobSource(Protocol):
    """The Broker, as far as it is asked here."""

    async def get_job(self, queue: QueueName, job_id: str) -> JobRecord | None:
        """One job, or None. Raises BrokerError."""


class StatusReporter:
    """``report`` on one CronTask at a time, as often as it says.

    writes, failures: of the status, so far
    """

    def __init__(
        self,
        cluster: Cluster,
        status_source: StatusSource,
        events: Events,
        clock: Clock,
        *,
        jobs: JobSource,
    ) -> None:
        self.writes = 0
        self.failures = 0
        self._cluster = cluster
        self._status_source = status_source
        self._events = events
        self._clock = clock
        self._jobs = jobs
        self._resting_until = 0.0
        self._is_troubled = False

    @property
    def is_resting(self) -> bool:
        """Is the API server left alone after an error?"""
        return self._clock.monotonic() < self._resting_until

    async def report(self, watched: Watched) -> float:
        """Bring its status up to date; in how many seconds to do so again."""
        if self.is_resting:
            return self._resting_until - self._clock.monotonic()
        spec = watched.spec
        seen = None if spec is None else await self._status_source.status(spec.uid)
        if seen is not None and not seen.led and not seen.trouble and watched.status():
            # What the last leader wrote stands until our term is raised.
            return _BETWEEN_LEADERS_S
        runs = Runs()
        if spec is not None and seen is not None and not seen.trouble:
            runs = await self._runs(spec, seen, watched.status())
        before = watched.status()
        conditions = judge(watched.subject, seen)
        wanted = wanted_status(watched.found, before, conditions, seen, runs, self._clock.now())
        patch = patch_of(before, wanted)
        if patch:
            # Whoever edits it looks for what came of it: that is written at once.
            if "observedGeneration" not in patch and (wait := self._too_soon(watched)):
                return wait
            if not await self._write(watched, patch):
                return _REST_S
            await self._tell(watched.found, before, conditions)
            await self._tell_manual_run(watched.found, patch.get("runNow"))
            # Where something changed, more is likely to follow.
            return min(WRITE_EVERY.total_seconds(), self._next(spec, seen, wanted))
        return self._next(spec, seen, wanted)

    def _too_soon(self, watched: Watched) -> float:
        """Seconds until it may be written to again, 0 if it may be now."""
        if watched.wrote_at is None:
            return 0.0
        since = self._clock.monotonic() - watched.wrote_at
        return max(0.0, WRITE_EVERY.total_seconds() - since)

    async def _write(self, watched: Watched, patch: Mapping[str, Any]) -> bool:
        # The version keeps the status of one that was deleted off its successor of the same name.
        body: Object = {"metadata": {"resourceVersion": watched.version}, "status": patch}
        try:
            answer = await self._cluster.patch(
                Kind.CRON_TASK, watched.namespace, watched.name, body, subresource="status"
            )
        except ClusterError as error:
            self.failures += 1
            self._bear(error)
            return False
        self._is_troubled = False
        self.writes += 1
        watched.note_written(answer, self._clock.monotonic())
        return True

    def _bear(self, error: ClusterError) -> None:
        if error.status in (_GONE, _REFUSED) or error.is_conflict:
            # It is about this object alone, which has changed or is gone.
            logger.info("%s", error, extra={"event": "status_not_written"})
            return
        self._resting_until = self._clock.monotonic() + _REST_S
        if not self._is_troubled:
            self._is_troubled = True
            logger.warning(
                "the status of CronTasks cannot be written: %s",
                error,
                extra={"event": "status_not_written"},
            )

    async def _tell(
        self, found: Object, before: Mapping[str, Any], conditions: Sequence[Condition]
    ) -> None:
        """Events for what is wrong and was not, or not like this."""
        for condition in conditions:
            if condition.status is not False or condition.type not in _TOLD:
                continue
            known = find_condition(before, condition.type) or {}
            if (known.get("status"), known.get("message")) != ("False", condition.message):
                reason = _TOLD[condition.type]
                await self._events.post(found, reason, condition.message, warning=True)

    async def _tell_manual_run(self, found: Object, run: Mapping[str, Any] | None) -> None:
        if run is not None:
            message = f"run {run['job']} was enqueued, as annotation tidework.dev/run-now asks"
            await self._events.post(found, "RunNow", message)

    async def _runs(self, spec: CronSpec, seen: CronStatus, before: Mapping[str, Any]) -> Runs:
        """How its last run fares, and whether a manual run that was asked for is enqueued."""
        last: JobState | None = None
        manual: ManualRun | None = None
        try:
            if seen.last_job:
                last = _known_end(seen.last_job, before)
                if last is None:
                    record = await self._jobs.get_job(spec.queue, seen.last_job)
                    last = None if record is None else record.state
            if _is_asked(spec, before):
                job_id = manual_job(spec, spec.run_now, self._clock.now()).id
                if await self._jobs.get_job(spec.queue, job_id) is not None:
                    manual = ManualRun(nonce=spec.run_now[:MAX_NONCE], job=job_id)
        except BrokerError as error:
            extra = {"event": "runs_unreadable", **queue_fields(spec.queue), "crontask": spec.name}
            logger.debug("runs of CronTask %s: %s", spec.name, error, extra=extra)
        return Runs(last, manual)

    def _next(
        self, spec: CronSpec | None, seen: CronStatus | None, status: Mapping[str, Any]
    ) -> float:
        """Soon while something is under way, else when the next fire is decided."""
        longest = LOOK_EVERY.total_seconds()
        if spec is None or seen is None:
            return longest
        is_under_way = status.get("lastResult") in _UNFINISHED or _is_asked(spec, status)
        if seen.active or seen.trouble or not seen.led or is_under_way:
            return WRITE_EVERY.total_seconds()
        if not seen.next_fires:
            return longest
        until = (seen.next_fires[0] - self._clock.now()).total_seconds()
        return min(max(until, 0.0) + _AFTER_DUE_S, longest)


_UNFINISHED = frozenset(state.value for state in JobState if state not in FINISHED_STATES)


def _known_end(job_id: str, before: Mapping[str, Any]) -> JobState | None:
    """The end of the job, if it was seen already."""
    result = before.get("lastResult") if before.get("lastJob") == job_id else None
    return JobState(result) if result in FINISHED_STATES else None


def _is_asked(spec: CronSpec, status: Mapping[str, Any]) -> bool:
    """Is there a manual run that was asked for and not seen enqueued?"""
    nonce = spec.run_now[:MAX_NONCE]
    return bool(nonce) and (status.get("runNow") or {}).get("nonce") != nonce
