"""What the machine draws: few names and few moments, so that requests meet each other."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import strategies as st

from tests.property.broker_machine_telling import tell
from tidework.model.job import DEFAULT_PRIORITY
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique, UniqueUntil

TASKS = ("send", "fetch")
ANNOUNCED = ((), TASKS[:1], TASKS)
ERRORS = (
    JobError("ValueError", "no"),
    JobError("TypeError", "expected 3 values", trace='File "/app/a.py", line 3, in run'),
)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job to be enqueued.

    known: None = a new id, else which of the latest ids; due: ms from now, None = not said;
    is_span: said as a delay, else as an instant
    """

    known: int | None = None
    task: str = TASKS[0]
    priority: int = DEFAULT_PRIORITY
    due: int | None = None
    is_span: bool = False
    unique: Unique | None = None


@dataclass(frozen=True, slots=True)
class FirePlan:
    """A due instant. step: 0 = the last one again, -1 = one before it, else minutes after it."""

    step: int
    wanted: str = "enqueued"
    policy: str = "Replace"
    max_runs: int | None = None
    fingerprint: str = "f1"


def _uniques() -> list[Unique]:
    """Every way to hold a key and to meet one; the last, an error, stops a whole request."""
    found = []
    for on_conflict in OnConflict:
        for key in ("k", "l"):
            found += [
                Unique(key, on_conflict=on_conflict),
                Unique(key, UniqueUntil.START, on_conflict=on_conflict),
                Unique(key, UniqueUntil.TTL, 7.5, on_conflict),
            ]
    return found


def _plans(count: int) -> list[JobPlan]:
    """Mixed once and for all: one draw is faster than six, and as various."""
    chance = random.Random(1)
    found = [
        JobPlan(
            known=chance.choice([None] * 9 + [chance.randrange(8)]),
            task=chance.choice(TASKS),
            priority=chance.choice((5, 5, 0, 1, 9)),
            due=chance.choice((None, None, None, -4_000, 0, 1, 3_000, 9_000, 60_000)),
            is_span=chance.random() < 0.5,
            unique=chance.choice([None] * 3 + [chance.choice(_uniques())]),
        )
        for _ in range(count)
    ]
    return [JobPlan(), *sorted(found, key=lambda plan: len(tell(plan)))]


UNIQUES = st.sampled_from(_uniques())
PLANS = st.sampled_from(_plans(400))
JOBS = st.lists(PLANS, min_size=1, max_size=4)

WHICH = st.integers(0, 7)
"""Counts from the newest, or from the most fitting."""

MOSTLY = st.sampled_from((True, True, True, False))

FEW = st.lists(WHICH, min_size=1, max_size=3)

SECONDS = (0, 3, 15)
OUTCOMES = st.sampled_from(
    [
        Outcome.complete(),
        Outcome.complete(b"7"),
        *(Outcome.retry(ERRORS[0], timedelta(seconds=s)) for s in SECONDS),
        *(Outcome.release(timedelta(seconds=s)) for s in SECONDS[:2]),
        *(
            Outcome.release_unknown(timedelta(seconds=s), timedelta(seconds=15), "unknown task")
            for s in SECONDS[:2]
        ),
        *(Outcome.bury(error) for error in ERRORS),
        Outcome.loss(ERRORS[1]),
        Outcome.cancelled(),
    ]
)
GIVEN_BACK = st.sampled_from(
    [Outcome.retry(ERRORS[0], timedelta(0)), Outcome.release(), Outcome.loss(ERRORS[1])]
)
"""Ready again at once, mostly."""

ENDS = st.lists(st.tuples(WHICH, OUTCOMES), max_size=3)

MOMENTS = st.sampled_from((1, 400, 1_000, 4_900, 5_001, 10_000, 25_000, 45_000, 700_000))
"""ms. Below and above what makes the reaper stand still, leases, retention, tombstones."""

LAPSES = st.sampled_from((0, 0, 8_000))
"""ms. Nothing, or the time for which a unique key is held."""

WORKERS = st.integers(0, 2)
TERMS = st.sampled_from((0, 0, 0, -1, 1))
"""From the current one."""

UIDS = st.sampled_from(("c1", "c2"))
FIRES = st.lists(
    st.builds(
        FirePlan,
        step=st.sampled_from((1, 1, 2, 0, -1)),
        wanted=st.sampled_from(("enqueued", "enqueued", "missed_deadline", "missed_catch_up")),
        policy=st.sampled_from(("Replace", "Replace", "Forbid", "Allow")),
        max_runs=st.sampled_from((None, None, 2)),
        fingerprint=st.sampled_from(("f1", "f1", "f2")),
    ),
    min_size=1,
    max_size=3,
)

DOCUMENTS = st.sampled_from(
    [
        b'{"task":"send","id":"%s","created_at":1}',
        b'{"task":"fetch","id":"%s","created_at":1,"unique":"k","priority":1}',
        b'{"task":"send","id":"%s","created_at":1,"unique":{"key":"k","on_conflict":"error"}}',
        b'{"task":"send","id":"%s","created_at":1,"unique":{"key":"k","on_conflict":"replace"}}',
        b'{"task":"send"}',
        b'{"task":"fetch","created_at":2,"unique":{"key":"k","on_conflict":"error"}}',
        b"\xff broken",
        b'{"task":7}',
        b'{"task":"send","id":"same"}',
        b'{"task":7,"id":"same"}',
        b'{"task":8,"id":"other"}',
    ]
)
"""``%s``: a new id. Without one, copies are equal."""
