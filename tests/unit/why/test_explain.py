"""The table of cases: facts of each kind, and what is said of them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tidework.model.backlog import Cordon, Delivery, DeliveryEnd, JobRecord, Pause, Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.outcome import JobError
from tidework.roster import WorkerEntry
from tidework.why.explain import explain
from tidework.why.facts import Facts
from tidework.why.finding import Case

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
QUEUE = QueueName("default", "emails")
MINUTE = timedelta(minutes=1)
ERROR = JobError("TimeoutError", "the mail server did not answer")


def record(state: JobState, **given: Any) -> JobRecord:
    fields: dict[str, Any] = {
        "id": "a",
        "task": "send",
        "state": state,
        "body": Job("a", "send", {}, max_attempts=4).encode(),
        "priority": 5,
        "attempt": 0,
        "deliveries": 0,
        "losses": 0,
        "releases": 0,
        "cancel_requested": False,
        "available_at": NOW - MINUTE,
        "changed_at": NOW - MINUTE,
        "started_at": None,
        "worker": "",
        "cron": "",
        "unique": "",
        "result": None,
        "error": None,
    }
    return JobRecord(**fields | given)


def worker(
    name: str = "w.1", silent: float = 1, cordon: Cordon = Cordon.NOBODY, **said: Any
) -> Any:
    document = {"slots": 4, "busy": 0} | said
    presence = Presence(name, NOW, document, timedelta(seconds=silent), cordon)
    return WorkerEntry(name, (QUEUE,), presence, cordon)


def ended(end: DeliveryEnd, cause: str = "") -> tuple[Delivery, ...]:
    return (Delivery(1, end, NOW - 2 * MINUTE, NOW - MINUTE, "w.1", cause),)


def facts(found: JobRecord | None, **given: Any) -> Facts:
    known: dict[str, Any] = {"tasks": ("send",), "workers": (worker(),)}
    return Facts(QUEUE, "a", NOW, found, **known | given)


READY = record(JobState.READY)
LATER = record(JobState.SCHEDULED, available_at=NOW + MINUTE)
RUNNING = record(JobState.RUNNING, worker="w.1", attempt=2, started_at=NOW - timedelta(seconds=3))
BUSY = worker(slots=4, busy=4)

# case, facts, what the first sentence says
TABLE = [
    (Case.UNKNOWN, facts(None), "never enqueued"),
    (Case.ELSEWHERE, facts(None, elsewhere=QueueName("default", "mail")), "in queue mail"),
    (Case.FORGOTTEN, facts(None, forgotten_at=NOW - MINUTE), "2026-12-01 02:59:00 UTC"),
    (Case.SUCCEEDED, facts(record(JobState.SUCCEEDED)), "has succeeded at 2026-12-01"),
    (
        Case.DEAD,
        facts(record(JobState.DEAD, attempt=3, losses=1, error=ERROR)),
        "after 3 attempts and 1 loss: TimeoutError: the mail server",
    ),
    (Case.CANCELLED, facts(record(JobState.CANCELLED)), "was cancelled"),
    (Case.RUNNING, facts(RUNNING), "on worker w.1 for 3.0 s, attempt 2 of 4"),
    (Case.CANCEL_REQUESTED, facts(replace(RUNNING, cancel_requested=True)), "asked to stop"),
    (Case.WORKER_SILENT, facts(RUNNING, workers=(worker(silent=40),)), "not seen for 40 s"),
    (Case.DUE_LATER, facts(LATER), "due in 60 s, at 2026-12-01 03:01:00 UTC"),
    (
        Case.RETRY_PAUSE,
        facts(replace(LATER, attempt=1, error=ERROR, history=ended(DeliveryEnd.RETRY))),
        "Attempt 1 of 4 failed, and the next one begins in 60 s: TimeoutError",
    ),
    (
        Case.LOSS_PAUSE,
        facts(replace(LATER, losses=2, history=ended(DeliveryEnd.LOSS))),
        "died 2 times while it ran",
    ),
    (
        Case.LOSS_PAUSE,
        facts(replace(LATER, losses=1, history=ended(DeliveryEnd.EXPIRED))),
        "died 1 time",
    ),
    (
        Case.RELEASE_PAUSE,
        facts(replace(LATER, releases=1, history=ended(DeliveryEnd.RELEASE, "it said so"))),
        "released it, uncounted: it said so",
    ),
    (
        Case.HELD,
        facts(replace(LATER, available_at=None, cron="c"), active_runs=("old", "a")),
        "the end of run old",
    ),
    (Case.HELD, facts(replace(LATER, available_at=None, unique="k")), "the end of the job"),
    (
        Case.NOT_PROMOTED,
        facts(replace(LATER, available_at=NOW - MINUTE), workers=()),
        "due for 60 s, and nobody has made it ready",
    ),
    (
        Case.PAUSED,
        facts(READY, pause=Pause(NOW - MINUTE, "the mail server moves")),
        "paused for 60 s: the mail server moves",
    ),
    (Case.NO_WORKER, facts(READY, workers=()), "No worker serves queue emails."),
    (Case.NO_WORKER, facts(READY, workers=(worker(silent=90),)), "silent: w.1"),
    (Case.UNKNOWN_TASK, facts(READY, tasks=("sent", "report")), "did you mean 'sent'?"),
    (
        Case.ALL_CORDONED,
        facts(READY, workers=(worker(cordon=Cordon.PERSON), worker("v.1", draining=True))),
        "w.1 (cordoned by a person), v.1 (it ends after its running jobs)",
    ),
    (
        Case.ALL_BUSY,
        facts(READY, ahead=7, workers=(BUSY, BUSY), service_time={"send": 20.0}),
        "All 8 slots of queue emails are busy, and 7 jobs are before it, about 20 s",
    ),
    (Case.IN_LINE, facts(READY, ahead=1), "1 job is before it"),
    (Case.ABOUT_TO_RUN, facts(READY, ahead=0), "next one in line"),
]


@pytest.mark.parametrize(
    ("case", "known", "said"), TABLE, ids=[f"{row[0]}-{at}" for at, row in enumerate(TABLE)]
)
def test_a_case(case: Case, known: Facts, said: str) -> None:
    main = explain(known).main

    assert main.case is case
    assert said in main.text


def test_every_case_is_in_the_table_and_in_the_docs() -> None:
    page = (ROOT / "docs/why.md").read_text("utf-8")

    assert {row[0] for row in TABLE} == set(Case)
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [case.value for case in Case]


def test_what_comes_next_in_its_way_is_told_behind() -> None:
    known = facts(LATER, pause=Pause(NOW, ""), workers=())

    cases = [finding.case for finding in explain(known).findings]

    assert cases == [Case.DUE_LATER, Case.PAUSED, Case.NO_WORKER]


def test_a_wait_is_not_estimated_without_service_times() -> None:
    found = explain(facts(READY, ahead=7, workers=(BUSY,))).main

    assert (found.ahead, found.wait_s) == (7, None)


@pytest.mark.parametrize(
    ("ahead", "busy", "wait"), [(0, 0, 0), (3, 0, 0), (4, 0, 10), (0, 4, 10), (8, 4, 30)]
)
def test_a_wait_counts_rounds_of_all_slots(ahead: int, busy: int, wait: float) -> None:
    known = facts(READY, ahead=ahead, workers=(worker(busy=busy),), service_time={"send": 10.0})

    assert explain(known).main.wait_s == wait


@pytest.mark.parametrize("said", [{"slots": "four"}, {"slots": None}, {"busy": -3}, {"busy": []}])
def test_a_worker_may_say_anything(said: dict[str, Any]) -> None:
    assert explain(facts(READY, ahead=0, workers=(worker(**said),))).main.text


def test_an_envelope_that_cannot_be_read_is_no_obstacle() -> None:
    assert "attempt 2." in explain(facts(replace(RUNNING, body=b"{"))).main.text
