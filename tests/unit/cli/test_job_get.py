"""`tidework job get`: what a running job says of itself, for people and as JSON."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from tidework.broker.connection.transport import drive
from tidework.cli import jobs
from tidework.cli.commands import root
from tidework.client import Client
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.progress import ProgressNote, positions_text, progress_text
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker

QUEUE = QueueName("shop", "default")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    """A job runs in its queue."""
    found = MemoryBroker()
    drive(found.enqueue(QUEUE, [Job("j", "walk", {})]))
    drive(found.exchange(QUEUE, ExchangeRequest("w", 1, 1)))
    client = Client(Settings(namespace="shop"), broker=found)
    monkeypatch.setattr(jobs, "client_of", lambda *_: client)
    return found


def shown(*options: str) -> str:
    ended = CliRunner().invoke(root, ["job", "get", "j", *options])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_a_job_that_says_nothing(broker: MemoryBroker) -> None:
    assert "progress" not in shown()
    assert {"progress", "checkpoints"}.isdisjoint(json.loads(shown("-o", "json")))


def test_how_far_it_is_and_where_its_checkpoints_stand(broker: MemoryBroker) -> None:
    texts = progress_text(40, 100, "page 40"), positions_text({"": 40, "rest": "b"})
    drive(broker.note_progress(QUEUE, [ProgressNote("j", "w:1", 1, *texts)]))

    found = json.loads(shown("-o", "json"))

    at = found["progress"].pop("at")
    assert at.endswith("+00:00")
    assert found["progress"] == {"done": 40, "total": 100, "note": "page 40"}
    assert found["checkpoints"] == {"": 40, "rest": "b"}
    (line,) = [line for line in shown().splitlines() if line.startswith("progress")]
    assert line.split(maxsplit=1)[1] == f"40 of 100 page 40, {at}"
    assert 'checkpoints   {"": 40, "rest": "b"}' in shown()


def test_a_cancelled_job_tells_how_it_ended(broker: MemoryBroker) -> None:
    drive(broker.cancel(QUEUE, "j"))
    assert "cancel_requested  true" in shown()
    end = Settlement("j", "w:1", Outcome.cancelled("it ended by itself 0.2 s after it was told"))
    drive(broker.exchange(QUEUE, ExchangeRequest("w", 2, 0, (end,))))

    assert "(it ended by itself 0.2 s after it was told)" in shown()


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome.loss(JobError("WorkerLost", "signal 9", cause="signal 9")), "lost once with its"),
        (Outcome.retry(JobError("ValueError", "no"), timedelta(seconds=9)), "attempt 1 failed: it"),
        (Outcome.release(timedelta(seconds=9)), "released, uncounted: it runs"),
    ],
)
def test_why_a_job_waits_though_somebody_had_it(
    broker: MemoryBroker, outcome: Outcome, why: str
) -> None:
    drive(broker.exchange(QUEUE, ExchangeRequest("w", 2, 0, (Settlement("j", "w:1", outcome),))))

    assert json.loads(shown("-o", "json"))["waits"].startswith(why)
    assert why in shown()
