"""What the log says of a job on its way: one schema, from the enqueue to the end."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from click.testing import CliRunner

from tests.support.logs import lines
from tests.support.waiting import until
from tests.unit.scheduler.rig import Rig, make_spec
from tests.unit.worker.consumers import QUEUE, Bench
from tidework import Tidework
from tidework.cli.commands import root
from tidework.logs import HumanFormatter, JsonFormatter
from tidework.model.identity import QueueName
from tidework.model.outcome import JobError, Outcome
from tidework.settings import Settings, WorkerSettings
from tidework.testing.memory.broker import MemoryBroker

OF_A_JOB = ("job_id", "task", "queue")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench()
    found.start()
    yield found
    await found.stop()


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (Outcome.retry(JobError("E", "x"), timedelta(0)), "job_retried"),
        (Outcome.bury(JobError("E", "x")), "job_buried"),
        (Outcome.release(timedelta(0), "later"), "job_released"),
        (Outcome.loss(JobError("E", "x")), "job_lost"),
        (Outcome.cancelled("asked for"), "job_cancelled"),
    ],
)
async def test_an_end_has_its_duration(
    bench: Bench, caplog: pytest.LogCaptureFixture, outcome: Outcome, event: str
) -> None:
    caplog.set_level(logging.INFO)
    await bench.enqueue("a")
    await bench.wait_sent(1)

    bench.end(1, outcome)  # after 0.2 s, it says
    await until(lambda: bool(lines(caplog, event)))

    (line,) = lines(caplog, event)
    assert [line[name] for name in (*OF_A_JOB, "attempt", "run_seconds")] == ["a", "t", "q", 1, 0.2]


async def test_a_job_that_had_not_begun_has_no_duration(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await bench.enqueue("a", task="unheard")
    await until(lambda: bool(lines(caplog, "job_released")))

    assert "run_seconds" not in lines(caplog, "job_released")[0]


async def test_a_claim_is_told_at_debug(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tidework.worker.queue.job_log")
    await bench.enqueue("a")
    await bench.wait_sent(1)
    caplog.set_level(logging.INFO, "tidework.worker.queue.job_log")
    bench.end(1)
    await bench.enqueue("b")
    await bench.wait_sent(1)

    (line,) = lines(caplog, "job_claimed")
    assert [line[name] for name in (*OF_A_JOB, "attempt")] == ["a", "t", "q", 1]


async def test_a_document_of_the_inbox_is_told_at_debug(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tidework.intake")
    await bench.broker.put_document(QUEUE, b'{"id": "a", "task": "t", "created_at": 1}')
    await bench.wait_sent(1)

    (line,) = lines(caplog, "document_taken_in")
    assert [line[name] for name in OF_A_JOB] == ["a", "t", "q"]


async def test_an_enqueue_is_told_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    app = Tidework("shop", broker=MemoryBroker())

    @app.task(queue="emails")
    def send() -> None:
        """Do nothing."""

    await send.options(job_id="quiet").enqueue()
    caplog.set_level(logging.DEBUG, "tidework.client")
    await send.options(job_id="a").enqueue()
    await send.options(job_id="a").enqueue()
    send.options(job_id="b").enqueue_sync()

    told = lines(caplog, "job_enqueued")
    assert [[line[name] for name in OF_A_JOB] for line in told] == [
        ["a", "send", "emails"],
        ["b", "send", "emails"],
    ]
    (again,) = lines(caplog, "job_not_enqueued")
    assert again["job_id"] == "a"


async def test_a_fire_names_its_job_task_and_queue(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(make_spec())
    await rig.run_to("12:01:00")

    told = lines(caplog, "fired")
    assert [line["job_id"] for line in told] == await rig.jobs()
    spec = make_spec()
    assert QueueName(told[0]["namespace"], told[0]["queue"]) == spec.queue
    assert (told[0]["task"], told[0]["crontask"]) == (spec.task, spec.name)


@pytest.mark.parametrize("kind", [Settings, WorkerSettings])
def test_a_level_may_be_in_capitals(kind: type[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("TIDEWORK_LOG_FORMAT", "JSON")

    found = kind.load()

    assert (found.log_level, found.log_format) == ("debug", "json")
    ended = CliRunner().invoke(root, ["scheduler", "nowhere.yaml"])
    assert "nowhere.yaml" in str(ended.exception), ended.output


@pytest.mark.parametrize("own", ["moved house", {"of": "the application"}])
def test_events_are_for_machines_and_an_applications_own_field_of_that_name_is_its_own(
    own: object,
) -> None:
    """Short lines leave our events out: the message says it."""

    def shown(formatter: logging.Formatter, event: object) -> str:
        record = logging.makeLogRecord({"name": "x", "msg": "job %s", "args": (1,)})
        record.event = event
        return formatter.format(record)

    machine, human = JsonFormatter({"worker": "w"}), HumanFormatter({"worker": "w"})
    line = json.loads(shown(machine, "job_buried"))
    assert (line["event"], line["message"], line["worker"]) == ("job_buried", "job 1", "w")
    assert json.loads(shown(machine, own))["event"] == own
    assert "job_buried" not in shown(human, "job_buried")
    assert f"event={own}" in shown(human, own)
