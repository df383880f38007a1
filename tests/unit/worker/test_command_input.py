"""What a command is told of its job."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tidework.errors import EnvelopeError
from tidework.model.command import JOB_VARIABLES, Command
from tidework.model.current import CurrentJob
from tidework.model.job import Job
from tidework.model.unique import Unique
from tidework.worker.child.command_input import document_of, variables_of

RUNNING = CurrentJob(
    id="j1",
    task="report",
    queue="reports",
    namespace="shop",
    attempt=2,
    max_attempts=4,
    deadline=datetime(2026, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
)
JOB = Job("j1", "report", {"to": "ada"}, created_at=1.5)


def test_the_workers_variables_go_on_but_for_its_own_settings() -> None:
    worker = {
        "PATH": "/bin",
        "HOME": "/tmp",
        "TIDEWORK_REDIS_URL": "redis://:secret@host",
        "TIDEWORK_REDIS_PASSWORD_FILE": "/etc/password",
        "TIDEWORK_LOG_FORMAT": "json",
        "TIDEWORK_APP": "commands.yaml",
        "TIDEWORK_QUEUE": '["a", "b"]',
        "TIDEWORK_SLOTS": "4",
        "TIDEWORK_PROBE_PORT": "8080",
        "TIDEWORK_JOB_ID": "of somebody else",
    }

    found = variables_of(Command(("x",), env={"HOME": "/srv", "A": "b"}), RUNNING, worker)

    assert found == {
        "PATH": "/bin",
        "HOME": "/srv",
        "A": "b",
        "TIDEWORK_REDIS_URL": "redis://:secret@host",
        "TIDEWORK_REDIS_PASSWORD_FILE": "/etc/password",
        "TIDEWORK_LOG_FORMAT": "json",
        "TIDEWORK_JOB_ID": "j1",
        "TIDEWORK_TASK": "report",
        "TIDEWORK_QUEUE": "reports",
        "TIDEWORK_NAMESPACE": "shop",
        "TIDEWORK_ATTEMPT": "2",
        "TIDEWORK_MAX_ATTEMPTS": "4",
        "TIDEWORK_DEADLINE": "1767225601",
    }
    assert found.keys() >= set(JOB_VARIABLES)


def test_a_secret_can_be_kept_from_it() -> None:
    worker = {"TIDEWORK_REDIS_URL": "redis://:secret@host"}

    found = variables_of(Command(("x",), env={"TIDEWORK_REDIS_URL": ""}), RUNNING, worker)

    assert found["TIDEWORK_REDIS_URL"] == ""


def test_the_document_is_the_envelope_and_what_the_worker_knows() -> None:
    job = JOB._replace(
        available_at=2.5,
        unique=Unique("ada"),
        trace={"traceparent": "00-1"},
        extra={"x-mine": [1], "attempt": "not the worker's"},
    )

    raw = document_of(job, {"to": "ada", "pages": 1}, RUNNING, 60)

    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1
    assert json.loads(raw) == {
        "v": 1,
        "id": "j1",
        "task": "report",
        "queue": "reports",
        "namespace": "shop",
        "params": {"to": "ada", "pages": 1},
        "attempt": 2,
        "max_attempts": 4,
        "timeout": 60,
        "deadline": 1767225601.5,
        "priority": 5,
        "created_at": 1.5,
        "available_at": 2.5,
        "unique": job.unique.document() if job.unique else None,
        "trace": {"traceparent": "00-1"},
        "x-mine": [1],
    }


def test_text_stays_text() -> None:
    raw = document_of(JOB, {"a": "zwei\nZeilen", "b": "ü", "c": 2**70}, RUNNING, 60)

    assert "ü".encode() in raw
    assert json.loads(raw)["params"] == {"a": "zwei\nZeilen", "b": "ü", "c": 2**70}


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(EnvelopeError):
        document_of(JOB, {"a": object()}, RUNNING, 60)
