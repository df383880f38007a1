"""What a server has to keep of a queue, told from the memory model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from tests.property.broker_machine_points import add_tallies, text_of_point
from tests.support.stored_queue import HELD, Scores, StoredQueue, StoredRecord
from tidework.broker.fires import write_fires
from tidework.broker.keys import LAYOUT
from tidework.clock import to_ms
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.scaled import DatedScaled
from tidework.testing.memory.entry import Cron, Entry
from tidework.testing.memory.state import QueueState


def expected_of(state: QueueState) -> StoredQueue:
    """The model's queue in the server's form."""
    entries = state.entries
    unknown = [e for e in entries.values() if e.unknown_until_ms]
    uniques = state.uniques.holders
    holder, term, until = state.leader
    return StoredQueue(
        meta=_meta(state),
        inbox=list(state.inbox)[::-1],
        intake=list(state.intake),
        jobs={e.id: (e.task, e.body) for e in entries.values()},
        records={e.id: record_of(e) for e in entries.values()},
        ready=_scores(state, JobState.READY),
        scheduled=_scores(state, JobState.SCHEDULED),
        spans=dict(_spans(state)),
        leases=_scores(state, JobState.RUNNING),
        holders=dict(Counter(e.worker for e in state.in_state(JobState.RUNNING))),
        details={e.id: json.loads(e.detail) for e in entries.values() if e.detail},
        succeeded=_scores(state, JobState.SUCCEEDED),
        dead=_scores(state, JobState.DEAD),
        cancelled=_scores(state, JobState.CANCELLED),
        tombstones=dict(state.tombstones),
        history={e.id: "\n".join(e.history) for e in entries.values() if e.history},
        progress={e.id: e.progress.decode() for e in entries.values() if e.progress},
        index=dict.fromkeys(_index(state), 0),
        errors=dict(Counter(_fingerprint(e) for e in state.in_state(JobState.DEAD))),
        uniques={key: job_id for key, (job_id, _, _) in uniques.items()},
        unique_ttls={key: ms for key, (_, ms, _) in uniques.items() if ms is not None},
        tasks=dict(state.tasks),
        unknown={e.id: e.available_ms for e in unknown if e.state is not JobState.RUNNING},
        unknown_until={
            e.id: e.unknown_until_ms * (-1 if e.state is JobState.RUNNING else 1) for e in unknown
        },
        onces={key: " ".join(lease or ("done",)) for key, (lease, _, _) in state.onces.items()},
        once_ttls={key: ms for key, (_, ms, _) in state.onces.items()},
        replacing=_replacing(state),
        counters={name: count for name, count in state.counters.items() if count},
        services={task: seconds * 1000 for task, seconds in state.service_time.items()},
        tallies="",
        points={
            f"{step.letter}{place}/{task}": text_of_point(number, numbers)
            for (step, place, task), (number, numbers) in state.points.points.items()
        },
        point_tasks=dict(state.points.tasks),
        guard=_guard(state),
        draining=dict(state.cordons.scores),
        replies=frozenset(name for name, _ in state.replies),
        presence={name: found and found.document for name, found in state.presence.items()},
        seen=dict(state.seen),
        stack_requests={
            name: (found.asked, found.answered, found.at)
            for name, found in state.stack_requests.numbers.items()
        },
        stacks={
            name: (found.number, found.document)
            for name, found in state.stack_requests.answers.items()
        },
        term=state.term,
        leader=f"{term} {holder}" if holder and until > state.now else "",
        crontasks=dict(state.crontasks),
        crons=dict(_crons(state)),
        fires={uid: write_fires(uid, found) for uid, found in state.fires.of.items()},
        scaling="" if state.scaling.latest is None else _stored(state.scaling.latest),
        decisions=[_stored(each).encode() for each in state.scaling.steps],
        runs={f"{e.cron}|{e.id}": 0 for e in entries.values() if e.cron and _lives(e)},
    )


def _stored(found: DatedScaled) -> str:
    return f"{to_ms(found.at)} {found.scaled.encode()}"


def _spans(state: QueueState) -> Iterator[tuple[str, int]]:
    yield from (("j" + e.id, e.span_ms) for e in state.entries.values() if e.span_ms)
    for key, (_, until, began) in state.uniques.holders.items():
        if until is not None:
            yield "u" + key, began
    yield from (("o" + key, began) for key, (_, _, began) in state.onces.items())


def normal(stored: StoredQueue) -> StoredQueue:
    """A server's queue without what the model need not know: when a record is written first,
    which task it names before the first claim, the server's run, a default that is not stored,
    how a leader's requests are told from their copies, what was not added to its point yet."""
    for job_id, (task, _) in stored.jobs.items():
        record = stored.record_of(job_id)
        if record is not None:
            if record.state == "waiting" and not record.task:
                record = replace(record, task=task)
            stored.records[job_id] = record
    stored.guard.pop("run", None)
    add_tallies(stored)
    stored.meta = {k: v for k, v in stored.meta.items() if not k.startswith("last_")}
    stored.meta.setdefault("durability", "async")
    return stored


def record_of(entry: Entry) -> StoredRecord:
    """The packed state of a job."""
    unique = entry.unique
    waits = entry.state in (JobState.READY, JobState.SCHEDULED)
    return StoredRecord(
        state="waiting" if waits else entry.state.value,
        priority=entry.priority,
        attempt=entry.attempt,
        deliveries=entry.deliveries,
        losses=entry.losses,
        releases=entry.releases,
        cancel=int(entry.cancel),
        raw=int(entry.raw),
        available=entry.available_ms,
        changed=entry.changed_ms,
        started=entry.started_ms,
        token=entry.token,
        cron=entry.cron,
        unique=f"{unique.until[0]}{unique.key}" if unique else "",
        task=entry.task,
        fingerprint=_fingerprint(entry) if entry.state is JobState.DEAD else "",
    )


def _scores(state: QueueState, of: JobState) -> Scores:
    return {entry.id: HELD if entry.held else entry.place[0] for entry in state.in_state(of)}


def _lives(entry: Entry) -> bool:
    return entry.state not in FINISHED_STATES


def _fingerprint(entry: Entry) -> str:
    return entry.error.fingerprint if entry.error else ""


def _meta(state: QueueState) -> dict[str, str]:
    found = {"layout": str(LAYOUT), "least_layout": str(LAYOUT)}
    found["durability"] = state.durability.value
    if state.announced:
        found["announced"] = state.announced
    if state.pause is not None:
        found["paused"] = f"{to_ms(state.pause.since)} {state.pause.reason}"
    return found


def _guard(state: QueueState) -> dict[str, str]:
    if not state._seen_ms:
        return {}
    return {"seen": str(state._seen_ms), "hold": str(state._hold_until)}


def _index(state: QueueState) -> Iterator[str]:
    for entry in state.entries.values():
        if _lives(entry) or entry.state is JobState.SUCCEEDED:
            continue
        tail = f"|{entry.changed_ms:013}|{entry.id}"
        if entry.task:
            yield f"task:{entry.task}|{entry.state.value[0].upper()}{tail}"
        if entry.state is JobState.DEAD:
            yield f"error:{_fingerprint(entry)}{tail}"


def _replacing(state: QueueState) -> dict[str, str]:
    found = {}
    for entry in state.entries.values():
        if entry.replaces:
            found[f"after/{entry.replaces}"] = entry.id
            found[f"before/{entry.id}"] = entry.replaces
    return found


def _crons(state: QueueState) -> Iterator[tuple[str, str]]:
    for cron in state.crons.values():
        for name, value in _cron_fields(cron).items():
            yield f"{cron.uid}/{name}", str(value)
    for uid, nonce in state.run_now_nonces.items():
        yield f"{uid}/run_now", nonce
    for uid, count in state.runs_by_hand.items():
        if count:
            yield f"{uid}/by_hand", str(count)
    for uid, seconds in state.backfilled.items():
        if seconds:
            yield f"{uid}/backfilled", "".join(f"{second:010}," for second in seconds)
    for uid, found in state.suspensions.items():
        until = 0 if found.until is None else to_ms(found.until)
        yield f"{uid}/suspended", f"{to_ms(found.since)}\t{until}\t{found.by}\t{found.reason}"
    for entry in state.entries.values():
        if entry.cron and entry.held:
            yield f"{entry.cron}/held", entry.id


def _cron_fields(cron: Cron) -> dict[str, object]:
    found: dict[str, object] = {"fingerprint": cron.fingerprint, "watermark": cron.watermark}
    if cron.last_decided is not None:
        found |= {"decided": cron.last_decided, "verdict": cron.last_verdict}
    if cron.last_fire is not None:
        found |= {"fire": cron.last_fire, "job": cron.last_job}
    return found | {verdict: count for verdict, count in cron.verdicts.items() if count}
