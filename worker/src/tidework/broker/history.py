"""How the deliveries of a job ended, as fragments/history.lua writes it: a line each.

letter TAB attempt TAB claimed ms TAB ended ms TAB worker TAB cause. A success needs no line, and
neither does the delivery under way: the record says it.
"""

from __future__ import annotations

from dataclasses import replace

from tidework.clock import from_ms
from tidework.model.backlog import Delivery, DeliveryEnd, JobRecord
from tidework.model.job import JobState

MOST_LINES = 20
"""The newest that are kept; a job's ``deliveries`` tells how many there were."""

_ENDS = {
    "r": DeliveryEnd.RETRY,
    "l": DeliveryEnd.RELEASE,
    "x": DeliveryEnd.LOSS,
    "e": DeliveryEnd.EXPIRED,
    "b": DeliveryEnd.BURY,
    "n": DeliveryEnd.CANCELLED,
}


def line_of(letter: str, attempt: int, claimed: int, ended: int, worker: str, cause: str) -> str:
    """A line; ``claimed`` and ``ended`` in ms."""
    return f"{letter}\t{attempt}\t{claimed}\t{ended}\t{worker}\t{cause}"


def read_history(text: str) -> tuple[Delivery, ...]:
    """The deliveries of lines, oldest first. Raises ValueError or KeyError for foreign bytes."""
    found = []
    for line in text.splitlines():
        letter, attempt, claimed, ended, worker, cause = line.split("\t")
        found.append(
            Delivery(
                attempt=int(attempt),
                end=_ENDS[letter],
                claimed_at=from_ms(int(claimed)),
                ended_at=from_ms(int(ended)),
                worker=worker,
                cause=cause,
            )
        )
    return tuple(found)


def with_history(record: JobRecord, text: str) -> JobRecord:
    """The record with its deliveries: those of lines, then what the record itself says."""
    return replace(record, history=(*read_history(text), *_last(record)))


def _last(record: JobRecord) -> tuple[Delivery, ...]:
    if record.started_at is None or not record.worker:
        return ()
    running = record.state is JobState.RUNNING
    return (
        Delivery(
            attempt=record.attempt,
            end=DeliveryEnd.RUNNING if running else DeliveryEnd.COMPLETE,
            claimed_at=record.started_at,
            ended_at=None if running else record.changed_at,
            worker=record.worker,
        ),
    )
