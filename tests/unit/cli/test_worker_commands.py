"""`tidework worker ...`: a run as ever, commands beside it, and documents of any kind of worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tidework.broker.connection.transport import drive
from tidework.cli import workers
from tidework.cli.commands import root
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.roster import Roster
from tidework.settings import WorkerSettings
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker import worker as worker_module

QUEUE = QueueName("shop", "emails")
SINCE = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["worker", *arguments])


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[WorkerSettings]:
    """Settings of workers that were to run."""
    found: list[WorkerSettings] = []

    def run_worker(settings: WorkerSettings) -> int:
        found.append(settings)
        return 0

    monkeypatch.setattr(worker_module, "run_worker", run_worker)
    monkeypatch.delenv("TIDEWORK_APP", raising=False)
    return found


def test_without_a_command_a_worker_runs(started: list[WorkerSettings]) -> None:
    assert run("--app", "shop", "--queue", "a", "--queue", "b", "--slots", "3").exit_code == 0

    (settings,) = started
    assert (settings.app, settings.queue, settings.slots) == ("shop", ("a", "b"), 3)


def test_the_application_may_be_named_by_the_environment(
    started: list[WorkerSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEWORK_APP", "shop")

    assert run().exit_code == 0

    assert started[0].app == "shop"


def test_without_an_application_it_says_what_there_is(started: list[WorkerSettings]) -> None:
    ended = run()

    assert ended.exit_code == 2
    assert "give --app MODULE to run a worker, or a command: list, get, drain" in ended.output
    assert not started


@pytest.mark.parametrize("command", ["list", "get", "drain", "stacks"])
def test_options_of_a_run_before_a_command_are_refused(
    command: str, started: list[WorkerSettings]
) -> None:
    ended = run("--redis-url", "redis://127.0.0.1:1/0", command)

    assert ended.exit_code == 2
    assert f"write options behind `tidework worker {command}`" in ended.output
    assert not started


class Shop:
    """Workers of the queue, as the commands find them."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()

    def beat(self, worker: str, document: Mapping[str, Any]) -> None:
        presence = Presence(worker, datetime.now(UTC), document)
        drive(self.broker.beat(QUEUE, presence, ttl=timedelta(minutes=5)))


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    found = Shop()
    monkeypatch.setattr(workers, "_roster", lambda *_: Roster(found.broker, [QUEUE]))
    return found


def test_the_progress_of_its_jobs(shop: Shop) -> None:
    job = {"slot": 0, "id": "j", "task": "walk", "queue": "emails", "attempt": 1}
    told = {"done": 40, "total": 100, "note": "page 40"}
    shop.beat("a.1", {"slots": 2, "busy": 2, "jobs": [{**job, "progress": told}, job]})

    lines = run("get", "a").output.splitlines()
    head, first, second = lines[-4:-1]
    assert head.split()[-1] == "PROGRESS"
    assert first.endswith("40 of 100 page 40")
    assert second.endswith("-")
    (found, _) = json.loads(run("get", "a", "-o", "json").output)["jobs"]
    assert found["progress"] == told


def test_a_worker_that_says_next_to_nothing(shop: Shop) -> None:
    shop.beat("php.1", {})

    (row,) = json.loads(run("list", "-o", "json").output)

    assert (row["name"], row["state"], row["jobs"]) == ("php", "working", [])
    _, line = run("list").output.splitlines()
    assert line.split() == ["php.1", "working", "emails", *"----", "0", "s", "ago", "-", "-"]
    assert run("get", "php").output.splitlines()[-1] == "free slots: 0"


@pytest.mark.parametrize(
    "document",
    [
        {"jobs": "none", "slots": "many", "busy": None, "started_at": "yesterday"},
        {"jobs": [1, None, {}, {"slot": "x", "since": 1e300}], "last_job_at": -1e300},
        {"jobs": {"a": 1}, "jobs_left_out": [], "answers": 7, "queues": 5, "state": "mine"},
    ],
)
def test_a_worker_that_talks_nonsense_is_shown_all_the_same(
    shop: Shop, document: Mapping[str, Any]
) -> None:
    shop.beat("odd.1", document)

    for arguments in (
        ["list"],
        ["get", "odd"],
        ["list", "-o", "json"],
        ["get", "odd", "-o", "json"],
    ):
        ended = run(*arguments)
        assert ended.exit_code == 0, ended.exception
        assert "odd.1" in ended.output
    assert json.loads(run("get", "odd", "-o", "json").output)["state"] == "working"


def test_several_jobs_may_share_a_slot_and_not_all_are_named(shop: Shop) -> None:
    jobs = [
        {"slot": slot, "id": f"j{n}", "task": "t", "queue": "emails", "attempt": 2, "since": SINCE}
        for n, slot in enumerate((1, 1, 0))
    ]
    shop.beat("w.1", {"slots": 7, "busy": 5, "jobs": jobs, "jobs_left_out": 2})

    lines = run("get", "w").output.splitlines()

    at = next(n for n, line in enumerate(lines) if line.startswith("SLOT"))
    assert [line.split()[:2] for line in lines[at + 1 : at + 4]] == [
        ["0", "j2"],
        ["1", "j0"],
        ["1", "j1"],
    ]
    assert lines[at + 4 :] == ["and 2 more jobs, which began later", "free slots: 2"]


def test_nobody_is_there(shop: Shop) -> None:
    assert json.loads(run("list", "-o", "json").output) == []
    assert "no worker has been seen" in run("list").output


def test_what_becomes_of_a_drain_is_told(shop: Shop) -> None:
    shop.beat("w.1", {})

    assert "claims nothing more (shop/emails); jobs that it holds: 0" in run("drain", "w").output
    drive(shop.broker.drain(QUEUE, 1, ["w.1"], 1, ttl=timedelta(minutes=1)))
    told = run("list").output.splitlines()[-1]
    assert told == "w.1: cordoned: by a person and the autoscaler: it claims nothing"
    undone = run("drain", "w", "--undo").output
    assert "may claim again; the autoscaler keeps it from claiming, for now" in undone
