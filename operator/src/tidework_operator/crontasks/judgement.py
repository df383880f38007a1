"""What is to be said of a CronTask: conditions from document, queue and scheduler. Pure.

ScheduleValid and QueueFound are about what its author wrote; Ready sums up whether the operator
serves it. Being suspended, at its end or held up by its own policy is wanted: Ready stays true,
and its reason and message tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidework.errors import ManifestError
from tidework.manifests.faults import suggestion
from tidework.scheduler.status import CronStatus
from tidework_operator.conditions import Condition
from tidework_operator.crontasks.documents import SCHEDULE_VALID, CronReading

READY = "Ready"
QUEUE_FOUND = "QueueFound"

_INVALID = "ScheduleInvalid"
_SPEC_INVALID = "SpecInvalid"
_MISSING = "QueueMissing"


@dataclass(frozen=True, slots=True)
class Subject:
    """A CronTask and its surroundings.

    queues: TaskQueues of its namespace -> hardTimeoutSeconds, None where that cannot be read
    """

    namespace: str
    reading: CronReading
    queues: Mapping[str, int | None]

    @property
    def has_queue(self) -> bool:
        """Is there the TaskQueue that it enqueues into?"""
        return self.reading.queue in self.queues

    @property
    def is_served(self) -> bool:
        """Does it take part in scheduling?"""
        return self.reading.spec is not None and self.has_queue

    @property
    def hard_timeout(self) -> int | None:
        """The hard timeout of its TaskQueue in seconds; None if that has none or is missing."""
        return self.queues.get(self.reading.queue)


def judge(subject: Subject, seen: CronStatus | None) -> tuple[Condition, ...]:
    """Ready, ScheduleValid and QueueFound. ``seen`` is None for one that is not served."""
    schedule, queue = _schedule(subject.reading), _queue(subject)
    return _ready(subject, schedule, queue, seen), schedule, queue


def _schedule(reading: CronReading) -> Condition:
    if reading.spec is not None:
        return Condition(SCHEDULE_VALID, True, SCHEDULE_VALID, "the schedule can be served")
    if reading.schedule_faults:
        return Condition(SCHEDULE_VALID, False, _INVALID, _say(reading.schedule_faults))
    return Condition(
        SCHEDULE_VALID, None, _SPEC_INVALID, "the schedule is checked once the spec is corrected"
    )


def _queue(subject: Subject) -> Condition:
    name, space = subject.reading.queue, subject.namespace
    if not name:
        return Condition(QUEUE_FOUND, None, _SPEC_INVALID, "spec.queue cannot be read; correct it")
    if subject.has_queue:
        return Condition(QUEUE_FOUND, True, QUEUE_FOUND, _cut_timeout(subject))
    hint = "there is none at all"
    if subject.queues:
        hint = suggestion(name, sorted(subject.queues))
    return Condition(
        QUEUE_FOUND,
        False,
        _MISSING,
        f"no TaskQueue {name!r} in namespace {space} ({hint}); create it, or correct spec.queue. "
        "Nothing fires until then",
    )


def _cut_timeout(subject: Subject) -> str:
    found = f"TaskQueue {subject.reading.queue} is there"
    spec, bound = subject.reading.spec, subject.hard_timeout
    if spec is None or spec.timeout is None or bound is None:
        return found
    seconds = int(spec.timeout.total_seconds())
    if seconds <= bound:
        return found
    return (
        f"{found}, but attempts end after {bound} s: timeoutSeconds {seconds} is above its "
        "hardTimeoutSeconds; lower the one or raise the other"
    )


def _ready(
    subject: Subject, schedule: Condition, queue: Condition, seen: CronStatus | None
) -> Condition:
    reading = subject.reading
    if reading.spec is None:
        reason = _INVALID if schedule.status is False else _SPEC_INVALID
        return Condition(READY, False, reason, f"nothing fires: {_say(reading.faults)}")
    if queue.status is not True:
        return Condition(READY, False, queue.reason, queue.message)
    if seen is None:
        return Condition(READY, None, "Starting", "the scheduler is about to take it up")
    if seen.trouble:
        return Condition(
            READY,
            False,
            "RedisUnreachable",
            f"nothing fires meanwhile: {seen.trouble}. Fires that become due are made up for as "
            "catchUp says; condition RedisReachable of the TaskQueue has more",
        )
    if not seen.led:
        return Condition(READY, None, "Starting", seen.reason)
    return Condition(READY, True, _why(seen), seen.reason or "it fires as scheduled")


def _why(seen: CronStatus) -> str:
    if seen.suspended:
        return "Suspended"
    if not seen.reason:
        return "Scheduled"
    return "Waiting" if seen.next_fires else "Finished"


def _say(faults: Sequence[ManifestError]) -> str:
    return "; ".join(f"{fault.field}: {fault.reason}" for fault in faults)
