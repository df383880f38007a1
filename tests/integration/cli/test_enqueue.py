"""`tidework enqueue` tells a typo where it is made: by the application, or by what workers said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.fixtures import namespace, redis_url, valkey
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.model.identity import QueueName

__all__ = ["namespace", "redis_url", "valkey"]

APP = """
from tidework import Tidework

app = Tidework("shop")

@app.task(queue="emails", max_attempts=7, priority=2, timeout=30)
def send(to: str, copies: int = 1) -> None: ...
"""


@pytest.fixture
def cli(
    redis_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    (tmp_path / "shop.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return CommandLine(redis_url, namespace)


def announce(cli: CommandLine, queue: str, *tasks: str) -> None:
    broker = connect_blocking(cli.redis_url)
    name = QueueName(cli.environment["TIDEWORK_NAMESPACE"], queue)
    drive(broker.open_queue(name))
    drive(broker.announce(name, "", tasks))
    drive(broker.close())


def warning_of(cli: CommandLine, *arguments: str) -> str:
    """What is said besides; the job is there all the same."""
    ended = cli.run("enqueue", *arguments)
    assert ended.returncode == 0, ended.stderr
    queue = arguments[arguments.index("-q") + 1] if "-q" in arguments else "default"
    assert json.loads(cli.ok("job", "get", ended.stdout.strip(), "-q", queue, "-o", "json"))
    return ended.stderr


def test_a_queue_that_nobody_serves_is_told(cli: CommandLine) -> None:
    told = warning_of(cli, "send", "-q", "emials")
    assert "no worker has served queue 'emials' so far. The job waits" in told
    announce(cli, "emails", "send")
    told = warning_of(cli, "send", "-q", "emials")
    assert "no worker has served queue 'emials' so far; did you mean 'emails'?" in told


def test_a_task_that_nobody_has_announced_is_told(cli: CommandLine) -> None:
    announce(cli, "emails", "send", "report")
    assert warning_of(cli, "send", "-q", "emails") == ""
    told = warning_of(cli, "sned", "-q", "emails")
    assert "no worker of queue 'emails' has announced a task 'sned'; did you mean 'send'?" in told
    assert "then it is a dead letter" in told
    assert "a task 'xyz'. The job waits" in warning_of(cli, "xyz", "-q", "emails")


def test_an_application_knows_its_tasks_their_params_and_their_bounds(cli: CommandLine) -> None:
    announce(cli, "emails", "send")
    job_id = cli.ok("enqueue", "send", '{"to":"ada"}', "--app", "shop")
    body = cli.ok("job", "get", job_id, "-q", "emails", "-o", "json")
    assert json.loads(body)["priority"] == 2
    broker = connect_blocking(cli.redis_url)
    name = QueueName(cli.environment["TIDEWORK_NAMESPACE"], "emails")
    record = drive(broker.get_job(name, job_id))
    drive(broker.close())
    assert record is not None
    envelope = json.loads(record.body)
    assert (envelope["max_attempts"], envelope["timeout"]) == (7, 30)
    told = cli.ok(
        "enqueue", "send", '{"to":"a"}', "--app", "shop", "-q", "other", "--priority", "9"
    )
    found = json.loads(cli.ok("job", "get", told, "-q", "other", "-o", "json"))
    assert found["priority"] == 9


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("sned", '{"to":"a"}', "--app", "shop"), "has no task 'sned'; did you mean 'send'?"),
        (("send", '{"too":"a"}', "--app", "shop"), "for PARAMS: to: Field required"),
        (("send", '{"to":"a"}', "--app", "shpo"), "app 'shpo' was not found; did you mean 'shop'?"),
        (("send", '{"to":"a"}', "--app", "shop:ap"), "shop:ap is missing; did you mean 'app'?"),
    ],
)
def test_what_the_application_does_not_know_is_refused(
    cli: CommandLine, arguments: tuple[str, ...], told: str
) -> None:
    assert told in cli.refused("enqueue", *arguments)
    assert "never had a job" in cli.run("queue", "stats", "emails").stderr
