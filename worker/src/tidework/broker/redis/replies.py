"""Reads what the scripts return into values of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tidework.broker.documents import Beginning
from tidework.broker.history import with_history
from tidework.broker.progress_text import with_progress
from tidework.broker.redis.stored import split_body
from tidework.clock import from_ms
from tidework.errors import BrokerError
from tidework.model.backlog import (
    Cordon,
    ErrorGroup,
    JobRecord,
    Pause,
    Presence,
    QueueLoad,
    QueueStats,
    StacksAnswer,
)
from tidework.model.fire import CronRecord, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.lease import ClaimedJob, ExchangeReply
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
    _, due, ready, documents, refused, claimed, cordoned, paused, asked = reply
    return ExchangeReply(
        claimed=tuple(_read_claimed(token, *found) for found in claimed),
        refused=tuple(raw.decode() for raw in refused),
        next_due=read_wait(due),
        backlog=ready,
        intake=documents,
        cordoned=bool(cordoned),
        paused=bool(paused),
        stacks_asked=bool(asked),
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
    (
        name,
        stored,
        priority,
        attempt,
        deliveries,
        losses,
        releases,
        cancel,
        due,
        changed,
        started,
    ) = reply[:11]
    token, cron, detail, unique = (reply[11].decode(), reply[12].decode(), *reply[13:15])
    task, body = split_body(job_id.encode(), stored)
    state = JobState(name.decode())
    ended_well = state is JobState.SUCCEEDED
    kept = kept_result(detail) if ended_well else KeptResult()
    record = JobRecord(
        id=job_id,
        task=task,
        state=state,
        body=body,
        priority=priority,
        attempt=attempt,
        deliveries=deliveries,
        losses=losses,
        releases=releases,
        cancel_requested=bool(cancel) and state not in FINISHED_STATES,
        available_at=None if due < 0 else from_ms(due),
        changed_at=from_ms(changed) if changed else None,
        started_at=from_ms(started) if started else None,
        worker=token.rpartition(":")[0],
        cron=cron,
        unique=unique.decode(),
        result=kept.data,
        error=JobError.decode(detail) if detail and not ended_well else None,
        result_json=kept.raw,
        result_refusal=kept.refusal,
    )
    return with_progress(with_history(record, reply[15].decode()), reply[16])


def read_stats(reply: Sequence[Any]) -> QueueStats:
    """See stats.lua."""
    states = dict(zip(JobState, reply[:6], strict=True))
    pairs = zip(reply[9::2], reply[10::2], strict=True)
    return QueueStats(
        states=states,
        inbox=reply[6],
        oldest_age=reply[7] / 1000,
        counters={name.decode(): int(value) for name, value in pairs},
        pause=read_pause(reply[8].decode()),
    )


def read_load(reply: Sequence[Any]) -> QueueLoad:
    """See gather.lua."""
    now, backlog, soon, in_flight, age, due, enqueued, holders, services, paused = reply[:10]
    unknown, task, version = reply[10:]
    return QueueLoad(
        backlog=backlog,
        due_soon=soon,
        in_flight=in_flight,
        busy_workers={
            name.decode(): int(held) for name, held in zip(holders[::2], holders[1::2], strict=True)
        },
        oldest_age=age / 1000,
        next_due=None if due < 0 else due,
        enqueued=enqueued,
        service_time={
            task.decode(): float(ms) / 1000
            for task, ms in zip(services[::2], services[1::2], strict=True)
        },
        now_ms=now,
        paused=bool(paused),
        unknown=unknown,
        unknown_task=task.decode(errors="replace"),
        announced=version.decode(errors="replace"),
    )


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
    fields = [raw.decode() for raw in reply[:9]]
    fingerprint, watermark, _, _, fire, job, run_now, held, by_hand = fields
    counts = reply[9:13]
    return CronRecord(
        uid=uid,
        fingerprint=fingerprint,
        watermark=int(watermark),
        verdicts=dict(zip(Verdict, counts, strict=True)),
        active=tuple(raw.decode() for raw in reply[13:]),
        held=held,
        last_fire=int(fire) if fire else None,
        last_job=job,
        last_run_now=run_now,
        by_hand=int(by_hand or 0),
    )
