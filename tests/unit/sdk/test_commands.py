"""Commands as tasks of an application."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tidework import Tidework
from tidework.errors import ConfigurationError, ParamsError
from tidework.model.job import decode_job
from tidework.model.task import TaskSpec
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker


class Report(BaseModel):
    to: str


@pytest.fixture
def app() -> Tidework:
    return Tidework("shop", settings=Settings(namespace="ns"), broker=MemoryBroker())


async def test_it_is_enqueued_as_any_task(app: Tidework) -> None:
    report = app.command(
        "send-report",
        ["php", "report.php"],
        queue="reports",
        timeout=60,
        max_attempts=2,
        priority=1,
    )

    handle = await report.options(delay=5).enqueue(to="ada", pages=[1, 2])

    job = decode_job((await handle.get()).body, new_id="", now=0)
    assert (job.task, job.params) == ("send-report", {"to": "ada", "pages": [1, 2]})
    assert (job.timeout, job.max_attempts, job.priority) == (60, 2, 1)
    assert handle.queue == "reports"
    assert app.tasks["send-report"] is report


def test_its_entry_in_the_registry_is_that_of_a_function(app: Tidework) -> None:
    options: dict[str, Any] = {"queue": "q", "timeout": 5, "max_attempts": 2, "delays": [1, 2]}

    command = app.command("a", ["true"], **options)
    function = app.task(name="b", **options)(lambda: None)

    one, other = command.spec.to_document(), function.spec.to_document()
    assert one | {"name": "b"} == other
    assert TaskSpec.from_document(one) == command.spec
    assert not command.is_async


async def test_its_params_are_checked_by_the_model(app: Tidework) -> None:
    report = app.command("report", ["php"], params=Report)

    with pytest.raises(ParamsError, match="to: Field required"):
        await report.enqueue()
    many = await report.enqueue_many([{"to": "ada"}, {"to": "bob"}])
    assert len(many) == 2


def test_it_cannot_be_called_here(app: Tidework) -> None:
    report = app.command("report", ["php", "report.php"])

    with pytest.raises(ConfigurationError, match="only workers run; enqueue it"):
        report(to="ada")


def test_what_is_wrong_is_said(app: Tidework) -> None:
    app.command("report", ["php"])

    with pytest.raises(ConfigurationError, match=r"'report' is defined twice: in .*\['php'\]"):
        app.command("report", ["node"])
    with pytest.raises(ConfigurationError, match="no option retries; there are: cwd, env,"):
        app.command("other", ["php"], retries=3)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="task name"):
        app.command("9 lives", ["php"])
    with pytest.raises(ConfigurationError, match="DNS label"):
        app.command("other", ["php"], queue="A B")
