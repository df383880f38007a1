"""What becomes of jobs: a count of each end, and a log line for each that is not a success.

A success is logged by the child that had it. Claims and documents are logged at debug.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidework.clock import Clock
from tidework.errors import BrokerUnavailableError
from tidework.logs import UNKNOWN_TASK
from tidework.metrics import WorkerNumbers
from tidework.model.lease import LEASE, POISON_CAP, ClaimedJob
from tidework.model.losses import pause_after
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.values.kept_result import is_refused
from tidework.worker.held import HeldJob

MOST_TOLD = 100
"""Unknown tasks that are warned of, each once; further jobs are told as any that is released."""

logger = logging.getLogger(__name__)

_COUNTED: dict[OutcomeKind, tuple[str, ...]] = {
    OutcomeKind.COMPLETE: ("succeeded",),
    OutcomeKind.RETRY: ("failed", "retried"),
    OutcomeKind.BURY: ("failed", "dead"),
    OutcomeKind.RELEASE: ("released",),
    OutcomeKind.LOSS: ("lost",),
    OutcomeKind.CANCELLED: ("cancelled",),
}
_TOLD = {
    OutcomeKind.RETRY: (logging.WARNING, "job_retried", "job failed, it will run again"),
    OutcomeKind.BURY: (logging.ERROR, "job_buried", "job buried"),
    OutcomeKind.RELEASE: (logging.INFO, "job_released", "job released"),
    OutcomeKind.LOSS: (logging.WARNING, "job_lost", "job lost with its child"),
    OutcomeKind.CANCELLED: (logging.INFO, "job_cancelled", "job cancelled"),
}


class JobLog:
    """Counts and logs what becomes of the jobs of one queue.

    poison_cap: losses that bury a job; lease: measures pauses after losses
    """

    def __init__(
        self,
        queue: str,
        numbers: WorkerNumbers,
        clock: Clock,
        poison_cap: int = POISON_CAP,
        lease: timedelta = LEASE,
    ) -> None:
        self._queue = queue
        self._numbers = numbers
        self._clock = clock
        self._poison_cap = poison_cap
        self._lease = lease
        self._redis_away = False
        self._told_unknown: set[str] = set()

    def note_claimed(self, task: str) -> None:
        """A job was taken under a lease."""
        self._numbers.jobs["claimed"][self._queue, task] += 1

    def tell_claimed(self, claimed: Sequence[ClaimedJob], held: Mapping[str, HeldJob]) -> None:
        """One exchange claimed these. A job of an unknown task is not among the held ones."""
        if not logger.isEnabledFor(logging.DEBUG):
            return
        for found in claimed:
            job = held.get(found.id)
            task = UNKNOWN_TASK if job is None else job.task
            logger.debug(
                "job claimed",
                extra={"event": "job_claimed", **self._fields_of(found.id, task, found.attempt)},
            )

    def note_ended(self, job: HeldJob, outcome: Outcome, seconds: float | None) -> None:
        """An attempt ended after ``seconds``, None if it had not begun."""
        key = (self._queue, job.task)
        for counter in _COUNTED[outcome.kind]:
            self._numbers.jobs[counter][key] += 1
        if outcome.kind is OutcomeKind.COMPLETE and is_refused(outcome.detail):
            self._numbers.jobs["result_refused"][key] += 1
        if seconds is not None:
            self._numbers.run_seconds[key].note(seconds)
            self._numbers.last_job_at = self._clock.monotonic()
        if outcome.kind is not OutcomeKind.COMPLETE:
            self._tell(job.claimed, job.task, outcome, seconds)
        losses = job.claimed.losses + 1
        if outcome.kind is OutcomeKind.LOSS and losses >= self._poison_cap:
            self._numbers.jobs["dead"][key] += 1
            extra = self._fields_of(job.id, job.task, job.claimed.attempt, seconds)
            extra |= {"event": "job_buried", "cause": "lost too often", "losses": losses}
            logger.error("job buried", extra=extra)

    def note_unfit(self, claimed: ClaimedJob, outcome: Outcome) -> None:
        """A claimed job that no child can run."""
        self.note_claimed(UNKNOWN_TASK)
        counter = "released" if outcome.kind is OutcomeKind.RELEASE else "dead"
        self._numbers.jobs[counter][self._queue, UNKNOWN_TASK] += 1
        if outcome.unknown_for is not None and self._is_news(outcome.cause):
            # The first of its kind: somebody may have mistyped a name, and a person is to see it.
            extra = self._fields_of(claimed.id, UNKNOWN_TASK, claimed.attempt)
            extra |= {"event": "job_unknown", "cause": outcome.cause}
            seconds = round(outcome.unknown_for.total_seconds())
            text = (
                "job waits for a worker that knows its task, %d s at most: then it is a dead letter"
            )
            logger.warning(text, seconds, extra=extra)
            return
        self._tell(claimed, UNKNOWN_TASK, outcome, None)

    def note_rejected(self) -> None:
        """A document from the inbox is a dead letter: intake.py tells which."""
        self._numbers.rejected[self._queue] += 1

    def note_pause(self, *, paused: bool) -> None:
        """Somebody paused the queue, or resumed it."""
        event = "queue_paused" if paused else "queue_resumed"
        text = "queue is paused, nothing is claimed" if paused else "queue goes on"
        logger.info(text, extra={"event": event, "queue": self._queue})

    def note_lease_lost(self, job_id: str, task: str, running: HeldJob | None = None) -> None:
        """The job is somebody else's: what we did for it does not count.

        running: the job if its end was not told yet
        """
        self._numbers.jobs["lease_lost"][self._queue, task] += 1
        extra: dict[str, Any] = {"job_id": job_id, "task": task, "queue": self._queue}
        if running is not None:
            at = running.started_at
            seconds = None if at is None else self._clock.monotonic() - at
            extra = self._fields_of(job_id, task, running.claimed.attempt, seconds)
        logger.warning(
            "lease lost, the result does not count", extra={"event": "lease_lost", **extra}
        )

    def note_redis_error(self, error: Exception, doing: str) -> None:
        """A request to Redis failed; it will be sent again."""
        is_away = isinstance(error, BrokerUnavailableError)
        self._redis_away |= is_away
        name = type(error).__name__
        self._numbers.redis_errors[name] += 1
        self._numbers.redis_trouble = str(error)
        event = "redis_away" if is_away else "redis_refused"
        extra = {"event": event, "queue": self._queue, "error": name}
        logger.warning("%s: %s", doing, error, extra=extra)

    def note_redis_answer(self) -> None:
        """A request to Redis was answered: told where one had not been."""
        self._numbers.redis_trouble = ""
        if self._redis_away:
            self._redis_away = False
            logger.info("Redis answers again", extra={"event": "redis_back", "queue": self._queue})

    def _is_news(self, cause: str) -> bool:
        is_new = cause not in self._told_unknown and len(self._told_unknown) < MOST_TOLD
        if is_new:
            self._told_unknown.add(cause)
        return is_new

    def _fields_of(
        self, job_id: str, task: str, attempt: int, seconds: float | None = None
    ) -> dict[str, Any]:
        fields = {"job_id": job_id, "task": task, "queue": self._queue, "attempt": attempt}
        return fields if seconds is None else fields | {"run_seconds": round(seconds, 3)}

    def _tell(
        self, claimed: ClaimedJob, task: str, outcome: Outcome, seconds: float | None
    ) -> None:
        level, event, text = _TOLD[outcome.kind]
        if not logger.isEnabledFor(level):
            return
        extra = self._fields_of(claimed.id, task, claimed.attempt, seconds)
        extra["event"] = event
        delay = outcome.delay
        if outcome.kind is OutcomeKind.LOSS and claimed.losses + 1 < self._poison_cap:
            delay = pause_after(claimed.losses + 1, self._lease)
        if delay:
            extra["delay_seconds"] = round(delay.total_seconds(), 3)
        if outcome.detail and outcome.kind in (OutcomeKind.RELEASE, OutcomeKind.CANCELLED):
            extra["cause"] = outcome.cause
        elif outcome.detail:
            error = JobError.decode(outcome.detail)
            extra |= {"cause": error.cause, "error": f"{error.type}: {error.message}"}
        logger.log(level, text, extra=extra)
