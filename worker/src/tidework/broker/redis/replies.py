"""Reads what the scripts return into values of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tidework.broker.answers import UpkeepReply
from tidework.broker.documents import Beginning
from tidework.broker.history import with_history
from tidework.broker.progress_text import with_progress
from tidework.broker.redis.parts import (
    ExchangeParts,
    GatherParts,
    JobParts,
    PruneParts,
    ReapParts,
    RenewParts,
    StatsParts,
)
from tidework.broker.redis.stored import split_body
from tidework.clock import from_ms
from tidework.errors import BrokerError
from tidework.model.backlog import (
    Cordon,
    ErrorGroup,
    FoundJob,
    JobRecord,
    Pause,
    Presence,
    QueueLoad,
    QueueStats,
    StacksAnswer,
)
from tidework.model.fire import CronRecord, Suspension, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.lease import ClaimedJob, ExchangeReply, RenewReply
from tidework.model.outcome import JobError
from tidework.model.values.kept_result import KeptResult, kept_result

_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


@contextmanager
def reading(what: str, queue: QueueName) -> Iterator[None]:
    """Turn what cannot be read into a BrokerError: somebody wrote into the queue past us."""
    try:
        yield
    except _UNREADABLE as error:
        raise BrokerError(
            f"{what} of queue {queue} cannot be read as Tidework stores it ({error!r:.200}); "
            f"look into tw1:{{{queue}}}:* for what another program has written"
        ) from error


def read_documents(reply: Sequence[Any]) -> tuple[bytes, ...]:
    """Documents of an inbox; of a large one there are its beginning and its length."""
    return tuple(Beginning(*found) if isinstance(found, list) else found for found in reply)


def read_wait(ms: int) -> timedelta | None:
    """A wait of the scripts: -1 = nothing known."""
    return None if ms < 0 else timedelta(milliseconds=ms)


def read_pause(text: str) -> Pause | None:
    """Since when and why a queue is paused, '' if it is not."""
    ms, _, reason = text.partition(" ")
    return Pause(from_ms(int(ms)), reason) if ms else None


def read_errors(reply: Sequence[Any]) -> tuple[ErrorGroup, ...]:
    """See list_errors.lua."""
    return tuple(
        ErrorGroup(
            fingerprint=reply[i].decode(),
            count=reply[i + 1],
            first_at=from_ms(reply[i + 2]),
            last_at=from_ms(reply[i + 3]),
            example=reply[i + 4].decode(),
            error=JobError.decode(reply[i + 5]) if reply[i + 5] else None,
        )
        for i in range(0, len(reply), 6)
    )


def read_exchange(reply: Sequence[Any], token: str) -> ExchangeReply:
    """See exchange.lua."""
    parts = ExchangeParts(*reply)
    return ExchangeReply(
        claimed=tuple(_read_claimed(token, *found) for found in parts.claimed),
        refused=tuple(raw.decode() for raw in parts.refused),
        next_due=read_wait(parts.next_due),
        backlog=parts.ready,
        intake=parts.documents,
        cordoned=bool(parts.cordoned),
        paused=bool(parts.paused),
        stacks_asked=bool(parts.stacks_asked),
    )


def read_renewal(reply: Sequence[Any]) -> RenewReply:
    """See renew.lua."""
    parts = RenewParts(*reply)
    return RenewReply(
        lost=tuple(raw.decode() for raw in parts.lost),
        cancel=tuple(raw.decode() for raw in parts.cancelling),
        next_due=read_wait(parts.next_due),
        intake=parts.documents,
        cordoned=bool(parts.cordoned),
        paused=bool(parts.paused),
        stacks_asked=bool(parts.stacks_asked),
    )


def read_upkeep(
    promoted: int, reaped: Sequence[Any], pruned: Sequence[Any], keep_count: int
) -> UpkeepReply:
    """See promote.lua, reap.lua and prune.lua."""
    reap, prune = ReapParts(*reaped), PruneParts(*pruned)
    return UpkeepReply(
        promoted,
        reap.given_back,
        reap.buried,
        prune.pruned,
        read_wait(reap.next_due),
        prune.dead,
        keep_count,
        prune.dropped,
        prune.documents,
    )


def _read_claimed(
    token: str,
    job_id: bytes,
    stored: bytes,
    attempt: int = 1,
    deliveries: int = 1,
    losses: int = 0,
    releases: int = 0,
) -> ClaimedJob:
    """The numbers are left out at a first delivery."""
    body = split_body(job_id, stored)[1]
    return ClaimedJob(job_id.decode(), token, attempt, deliveries, losses, releases, body)


def read_job(job_id: str, reply: Sequence[Any]) -> JobRecord:
    """See get_job.lua."""
    parts = JobParts(*reply)
    task, body = split_body(job_id.encode(), parts.body)
    state = JobState(parts.state.decode())
    ended_well = state is JobState.SUCCEEDED
    kept = kept_result(parts.detail) if ended_well else KeptResult()
    record = JobRecord(
        id=job_id,
        task=task,
        state=state,
        body=body,
        priority=parts.priority,
        attempt=parts.attempt,
        deliveries=parts.deliveries,
        losses=parts.losses,
        releases=parts.releases,
        cancel_requested=bool(parts.cancel) and state not in FINISHED_STATES,
        available_at=None if parts.due < 0 else from_ms(parts.due),
        changed_at=from_ms(parts.changed) if parts.changed else None,
        started_at=from_ms(parts.started) if parts.started else None,
        worker=parts.token.decode().rpartition(":")[0],
        cron=parts.cron.decode(),
        unique=parts.unique.decode(),
        result=kept.data,
        error=JobError.decode(parts.detail) if parts.detail and not ended_well else None,
        result_json=kept.raw,
        result_refusal=kept.refusal,
    )
    return with_progress(with_history(record, parts.history.decode()), parts.progress)


def read_found_job(job_id: str, reply: Sequence[Any]) -> FoundJob:
    """See get_jobs.lua."""
    *parts, length = reply
    return FoundJob(read_job(job_id, parts), is_cut=length > len(parts[1]))


def read_stats(reply: Sequence[Any]) -> QueueStats:
    """See stats.lua."""
    parts = StatsParts.of(reply)
    return QueueStats(
        states={state: getattr(parts, state.value) for state in JobState},
        inbox=parts.documents,
        oldest_age=parts.oldest_age / 1000,
        counters={name.decode(): int(value) for name, value in _pairs(parts.counters)},
        pause=read_pause(parts.paused.decode()),
    )


def read_load(reply: Sequence[Any]) -> QueueLoad:
    """See gather.lua."""
    parts = GatherParts(*reply)
    return QueueLoad(
        backlog=parts.backlog,
        due_soon=parts.due_soon,
        in_flight=parts.running,
        busy_workers={name.decode(): int(held) for name, held in _pairs(parts.leases)},
        oldest_age=parts.oldest_age / 1000,
        next_due=None if parts.next_due < 0 else parts.next_due,
        enqueued=parts.enqueued,
        service_time={task.decode(): float(ms) / 1000 for task, ms in _pairs(parts.service_times)},
        now_ms=parts.now,
        paused=bool(parts.paused),
        unknown=parts.unknown,
        unknown_task=parts.unknown_task.decode(errors="replace"),
        announced=parts.announced.decode(errors="replace"),
    )


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """A hash, as scripts return it."""
    return zip(flat[::2], flat[1::2], strict=True)


def read_workers(reply: Sequence[Any]) -> list[Presence]:
    """See workers.lua."""
    now, *found = reply
    return [
        Presence(
            incarnation=found[i].decode(),
            seen_at=from_ms(found[i + 1]),
            document=dict(json.loads(found[i + 2])),
            silent_for=timedelta(milliseconds=max(0, now - found[i + 1])),
            cordon=Cordon(found[i + 3]),
        )
        for i in range(0, len(found), 4)
    ]


def read_stacks(stored: bytes) -> StacksAnswer:
    """See beat.lua."""
    number, _, document = stored.partition(b" ")
    return StacksAnswer(int(number), dict(json.loads(document)))


def read_cron(uid: str, reply: Sequence[Any]) -> CronRecord:
    """See fragments/cron.lua."""
    fields = [raw.decode() for raw in reply[:10]]
    fingerprint, watermark, _, _, fire, job, run_now, held, by_hand, suspended = fields
    counts = reply[10:14]
    return CronRecord(
        uid=uid,
        fingerprint=fingerprint,
        watermark=int(watermark),
        verdicts=dict(zip(Verdict, counts, strict=True)),
        active=tuple(raw.decode() for raw in reply[14:]),
        held=held,
        last_fire=int(fire) if fire else None,
        last_job=job,
        last_run_now=run_now,
        by_hand=int(by_hand or 0),
        suspension=read_suspension(suspended) if suspended else None,
    )


def read_suspension(text: str) -> Suspension:
    """See suspend_cron.lua."""
    since, until, by, reason = text.split("\t")
    ends = None if until == "0" else from_ms(int(until))
    return Suspension(by, reason, from_ms(int(since)), ends)
