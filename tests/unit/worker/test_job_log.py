"""What a worker tells of its Redis."""

from __future__ import annotations

import logging

import pytest

from tests.support.logs import events, lines
from tests.unit.worker.consumers import Bench
from tests.unit.worker.jobs import held
from tidework.errors import BrokerRefusedError, BrokerUnavailableError
from tidework.model.outcome import JobError, Outcome


def test_the_end_of_an_outage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Bench().journal

    journal.note_redis_answer()
    for _ in range(2):
        journal.note_redis_error(BrokerUnavailableError("away"), "exchange")
    journal.note_redis_answer()
    journal.note_redis_answer()

    assert events(caplog) == ["redis_away", "redis_away", "redis_back"]


def test_a_refusal_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Bench().journal

    journal.note_redis_error(BrokerRefusedError("full"), "inbox")
    journal.note_redis_answer()

    assert events(caplog) == ["redis_refused"]


def test_a_loss_is_told_with_the_pause_after_it_and_the_last_one_with_the_burial(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal, lost = Bench().journal, Outcome.loss(JobError("WorkerLost", "signal 9"))

    for losses in (0, 1, 2):
        journal.note_ended(held("j", losses=losses), lost, 1.0)

    assert events(caplog) == ["job_lost", "job_lost", "job_lost", "job_buried"]
    assert [line.get("delay_seconds") for line in lines(caplog, "job_lost")] == [1.2, 12, None]
