"""What a worker tells of its Redis."""

from __future__ import annotations

import logging

import pytest

from tests.unit.worker.consumers import Bench
from tidework.errors import BrokerRefusedError, BrokerUnavailableError


def test_the_end_of_an_outage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Bench().journal

    journal.note_redis_answer()
    for _ in range(2):
        journal.note_redis_error(BrokerUnavailableError("away"), "exchange")
    journal.note_redis_answer()
    journal.note_redis_answer()

    assert [record.message for record in caplog.records] == [
        "exchange: away",
        "exchange: away",
        "Redis answers again",
    ]


def test_a_refusal_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Bench().journal

    journal.note_redis_error(BrokerRefusedError("full"), "inbox")
    journal.note_redis_answer()

    assert [record.message for record in caplog.records] == ["inbox: full"]
