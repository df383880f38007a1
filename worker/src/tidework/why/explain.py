"""Facts into findings: the table of cases. Pure.

A job that waits is looked at in the order in which the reasons count: first what keeps it from
being due, then what keeps any worker from it, then its place in line. The first one is the answer;
the others are told behind it, since the job would meet them next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from tidework.errors import EnvelopeError
from tidework.meant import did_you_mean, listed
from tidework.model.backlog import Cordon, DeliveryEnd, JobRecord
from tidework.model.job import JobState, decode_stored_job
from tidework.roster import WorkerEntry, in_words
from tidework.why.facts import Facts
from tidework.why.finding import Case, Explanation, Finding


def explain(facts: Facts) -> Explanation:
    """Why the job does not run, or what it does."""
    if facts.record is None:
        return Explanation((_absent(facts),))
    return Explanation(tuple(_OF_STATE[facts.record.state](facts, facts.record)))


def _absent(facts: Facts) -> Finding:
    if facts.forgotten_at is not None:
        return Finding(
            Case.FORGOTTEN,
            f"It ended at {_moment(facts.forgotten_at)}, and is deleted since.",
            "Raise retention.count of the queue to keep ended jobs for longer.",
        )
    if facts.elsewhere is not None:
        other = facts.elsewhere.name
        return Finding(
            Case.ELSEWHERE,
            f"It is not in queue {facts.queue.name}, but in queue {other}.",
            f"Ask again with --queue {other}.",
        )
    return Finding(
        Case.UNKNOWN,
        f"No queue of namespace {facts.queue.namespace} knows it: it was never enqueued there, "
        "or has ended and is deleted.",
        "Compare the id and the namespace with what the enqueue returned. A job whose unique key "
        "another one held was not enqueued: the enqueue returned the id of that one.",
    )


def _succeeded(_facts: Facts, record: JobRecord) -> Iterator[Finding]:
    yield Finding(Case.SUCCEEDED, f"It has succeeded{_at(record.changed_at)}.")


def _cancelled(_facts: Facts, record: JobRecord) -> Iterator[Finding]:
    yield Finding(
        Case.CANCELLED,
        f"It was cancelled{_at(record.changed_at)}.",
        "Retry it as a new job if it is to run after all.",
    )


def _dead(facts: Facts, record: JobRecord) -> Iterator[Finding]:
    error = record.error
    cause = "" if error is None else f": {error.type}: {error.message:.200}"
    times = _times(record.attempt, "attempt")
    lost = f" and {_times(record.losses, 'loss', 'losses')}" if record.losses else ""
    yield Finding(
        Case.DEAD,
        f"It is a dead letter{_at(record.changed_at)}, after {times}{lost}{cause}.",
        f"Mend the cause, then run it again: tidework dead replay {record.id} "
        f"--queue {facts.queue.name}.",
    )


def _running(facts: Facts, record: JobRecord) -> Iterator[Finding]:
    since = "" if record.started_at is None else f" for {_span(facts.now - record.started_at)}"
    where = f"on worker {record.worker}{since}, {_attempt(record)}"
    worker = next((each for each in facts.workers if each.incarnation == record.worker), None)
    if worker is not None and worker.presence.is_stale:
        yield Finding(
            Case.WORKER_SILENT,
            f"It was claimed {where}, but that worker was not seen for "
            f"{in_words(worker.presence.silent_for)}.",
            "Nothing: it runs again elsewhere as soon as its lease has expired.",
        )
    if record.cancel_requested:
        yield Finding(
            Case.CANCEL_REQUESTED,
            f"It runs {where}, and was asked to stop.",
            "Nothing: its worker kills it if it does not end by itself.",
        )
    yield Finding(Case.RUNNING, f"It runs {where}.")


def _scheduled(facts: Facts, record: JobRecord) -> Iterator[Finding]:
    yield _wait(facts, record)
    yield from _obstacles(facts, record)


def _wait(facts: Facts, record: JobRecord) -> Finding:
    """What it is scheduled for."""
    due = record.available_at
    if due is None:
        before = ", ".join(each for each in facts.active_runs if each != record.id)
        which = f"run {before}" if before else "the job"
        return Finding(
            Case.HELD,
            f"It waits for the end of {which}, which it replaces and which was asked to stop.",
            "Nothing, unless the old one does not end: look at that one.",
        )
    if due <= facts.now:
        return Finding(
            Case.NOT_PROMOTED,
            f"It is due for {_span(facts.now - due)}, and nobody has made it ready.",
            "Start a worker of the queue, or a scheduler that leads it: either does so at once.",
        )
    left = f"in {_span(due - facts.now)}"
    last = record.history[-1].end if record.history else None
    if last is DeliveryEnd.RETRY:
        cause = record.error and f": {record.error.type}: {record.error.message:.200}"
        return Finding(
            Case.RETRY_PAUSE,
            f"{_attempt(record).capitalize()} failed, and the next one begins {left}{cause or ''}.",
            "Promote it if the cause is mended.",
            until=due,
        )
    if last in (DeliveryEnd.LOSS, DeliveryEnd.EXPIRED):
        return Finding(
            Case.LOSS_PAUSE,
            f"Its process or worker died {_times(record.losses, 'time')} while it ran; it runs "
            f"again {left}, with a longer pause each time.",
            "Look into the worker's log for why it died; memory is the usual cause.",
            until=due,
        )
    if last is DeliveryEnd.RELEASE:
        return Finding(
            Case.RELEASE_PAUSE,
            f"A worker released it, uncounted: {record.history[-1].cause or 'it said no reason'}. "
            f"It runs again {left}.",
            until=due,
        )
    return Finding(
        Case.DUE_LATER,
        f"It is due {left}, at {_moment(due)}.",
        "Promote it if it is not to wait.",
        until=due,
    )


def _ready(facts: Facts, record: JobRecord) -> Iterator[Finding]:
    yield from _obstacles(facts, record)
    yield _place(facts)


def _obstacles(facts: Facts, record: JobRecord) -> Iterator[Finding]:
    """What keeps every worker from it."""
    queue = facts.queue.name
    if facts.pause is not None:
        reason = f": {facts.pause.reason}" if facts.pause.reason else ", without a reason"
        yield Finding(
            Case.PAUSED,
            f"Queue {queue} is paused for {_span(facts.now - facts.pause.since)}{reason}.",
            f"Resume it: tidework queue resume {queue}.",
        )
    living = [each for each in facts.workers if not each.presence.is_stale]
    if not living:
        stale = [each.incarnation for each in facts.workers]
        seen = f" The last ones are silent: {listed(stale)}." if stale else ""
        yield Finding(
            Case.NO_WORKER,
            f"No worker serves queue {queue}.{seen}",
            f"Start one (tidework worker --queue {queue}), or let the TaskQueue of this name have "
            "replicas.",
        )
        return
    if record.task and facts.tasks and record.task not in facts.tasks:
        yield Finding(
            Case.UNKNOWN_TASK,
            f"No worker that was seen knows task {record.task!r}"
            f"{did_you_mean(record.task, facts.tasks)}. They know: {listed(facts.tasks)}.",
            "Start a worker of a version that has it. If it was renamed, enqueue it by its new "
            "name.",
        )
    if not _claiming(living):
        who = ", ".join(f"{each.incarnation} ({_why_it_stops(each)})" for each in living[:5])
        yield Finding(
            Case.ALL_CORDONED,
            f"No worker of queue {queue} claims jobs: {who}.",
            "Undo it (tidework worker undrain NAME), or start another worker.",
        )


def _place(facts: Facts) -> Finding:
    claiming = _claiming([each for each in facts.workers if not each.presence.is_stale])
    slots = sum(_number(each, "slots") for each in claiming)
    busy = sum(min(_number(each, "busy"), _number(each, "slots")) for each in claiming)
    ahead = facts.ahead or 0
    wait_s = _estimate(facts, ahead, slots, busy)
    about = "" if wait_s is None else f", about {_span(timedelta(seconds=wait_s))}"
    line = f"{_times(ahead, 'job is', 'jobs are')} before it"
    if slots and busy >= slots:
        return Finding(
            Case.ALL_BUSY,
            f"All {slots} slots of queue {facts.queue.name} are busy, and {line}{about}.",
            "Nothing, unless it has to be quicker: more replicas, or a higher priority (0 is "
            "first) for the next one.",
            ahead=ahead,
            wait_s=wait_s,
        )
    if ahead:
        return Finding(Case.IN_LINE, f"{line.capitalize()}{about}.", ahead=ahead, wait_s=wait_s)
    return Finding(Case.ABOUT_TO_RUN, "It is the next one in line.", ahead=0, wait_s=wait_s)


def _estimate(facts: Facts, ahead: int, slots: int, busy: int) -> float | None:
    """Seconds, from the mean of the tasks' service times. Nothing is known without them."""
    times = list(facts.service_time.values())
    if not slots or not times:
        return None
    mean = sum(times) / len(times)
    rounds = math.ceil((ahead + 1 - (slots - busy)) / slots)
    return max(0, rounds) * mean


def _claiming(workers: list[WorkerEntry]) -> list[WorkerEntry]:
    return [
        each
        for each in workers
        if each.cordon is Cordon.NOBODY and not each.document.get("draining")
    ]


def _why_it_stops(worker: WorkerEntry) -> str:
    if worker.document.get("draining"):
        return "it ends after its running jobs"
    by = "a person" if Cordon.PERSON in worker.cordon else "the autoscaler"
    return f"cordoned by {by}"


def _number(worker: WorkerEntry, name: str) -> int:
    """Of its document, which anybody may have written."""
    found = worker.document.get(name)
    return found if isinstance(found, int) and found > 0 else 0


def _attempt(record: JobRecord) -> str:
    try:
        most = decode_stored_job(record.body).max_attempts
    except EnvelopeError:
        most = None
    return f"attempt {record.attempt}" + (f" of {most}" if most else "")


def _times(count: int, word: str, plural: str = "") -> str:
    return f"{count} {word}" if count == 1 else f"{count} {plural or word + 's'}"


def _span(span: timedelta) -> str:
    seconds = span.total_seconds()
    return f"{max(seconds, 0):.1f} s" if seconds < 10 else in_words(span)


def _at(moment: datetime | None) -> str:
    return "" if moment is None else f" at {_moment(moment)}"


def _moment(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")


_OF_STATE: dict[JobState, Callable[[Facts, JobRecord], Iterator[Finding]]] = {
    JobState.SCHEDULED: _scheduled,
    JobState.READY: _ready,
    JobState.RUNNING: _running,
    JobState.SUCCEEDED: _succeeded,
    JobState.DEAD: _dead,
    JobState.CANCELLED: _cancelled,
}
