"""What a person does with a CronTask on the command line."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.command_line import CommandLine
from tests.support.fixtures import namespace, redis_url, valkey
from tidework.broker.redis.redis_broker import connect
from tidework.model.identity import QueueName

__all__ = ["namespace", "redis_url", "valkey"]


@pytest.fixture
def cli(redis_url: str, namespace: str) -> CommandLine:
    return CommandLine(redis_url, namespace)


async def put_crontask(cli: CommandLine, **spec: bool) -> None:
    broker = connect(cli.redis_url)
    queue = QueueName(cli.environment["TIDEWORK_NAMESPACE"], "emails")
    document = {
        "apiVersion": "tidework.dev/v1alpha1",
        "kind": "CronTask",
        "metadata": {"name": "hourly", "namespace": queue.namespace, "uid": "c1"},
        "spec": {"queue": "emails", "task": "send", "every": "1h", **spec},
    }
    term = await broker.take_term(queue)
    await broker.open_queue(queue)
    await broker.put_crontasks(queue, term, {"c1": json.dumps(document).encode()})
    await broker.admit_cron(queue, term, "c1", "f", 1_700_000_000, reset=False)
    await broker.close()


def test_a_crontask_is_suspended_and_resumed_by_a_person(cli: CommandLine) -> None:
    asyncio.run(put_crontask(cli))
    assert cli.ok("cron", "resume", "hourly") == "nobody had it suspended"
    told = cli.ok("cron", "suspend", "hourly", "--reason", "a repair", "--by", "ann")
    assert told.startswith("suspended by ann since ")
    told = cli.ok("cron", "suspend", "hourly", "--reason", "mine", "--by", "bob", "--until", "2h")
    assert told.startswith("it was suspended already, by ann since ")
    asyncio.run(put_crontask(cli))  # the operator mirrors it anew
    (row,) = json.loads(cli.ok("cron", "list", "-o", "json"))
    assert (row["suspended"], row["next"]) == (True, [])
    assert row["reason"].endswith(": a repair")
    assert cli.ok("cron", "resume", "hourly").startswith("resumed; it was by ann")
    (row,) = json.loads(cli.ok("cron", "list", "-o", "json"))
    assert (row["suspended"], len(row["next"])) == (False, 5)


def test_one_that_a_later_version_wrote_hides_no_other(cli: CommandLine) -> None:
    asyncio.run(put_crontask(cli, untilTheMoon=True))
    listed = cli.run("cron", "list", "-o", "json")
    assert (listed.returncode, json.loads(listed.stdout)) == (0, [])
    assert listed.stderr.startswith("hourly cannot be read: ")
    assert "untilTheMoon" in listed.stderr


def test_a_crontask_that_its_document_suspends_is_not_resumed(cli: CommandLine) -> None:
    asyncio.run(put_crontask(cli, suspend=True))
    cli.ok("cron", "suspend", "hourly", "--reason", "a repair")
    said = cli.refused("cron", "resume", "hourly")
    assert "a person's suspension was ended, but its document has suspend: true" in said
    assert "a person's suspension" not in cli.refused("cron", "resume", "hourly")


def test_past_instants_of_a_crontask_run_once(cli: CommandLine) -> None:
    asyncio.run(put_crontask(cli))  # decided up to 2023-11-14T22:13:20Z
    wanted = ("hourly", "--since", "2023-11-14T20:00:00Z")
    shown = cli.run("cron", "backfill", *wanted, "--dry-run")
    assert shown.stdout.split() == [f"2023-11-14T{hour}:00:00+00:00" for hour in (20, 21, 22)]
    assert "3 instants" in shown.stderr
    assert "decided up to 2023-11-14T22:13:20+00:00" in shown.stderr
    assert json.loads(cli.ok("cron", "runs", "hourly", "-o", "json")) == []
    narrow = (*wanted, "--until", "2023-11-14T21:00:00Z", "--yes", "--reason", "lost")
    told = cli.ok("cron", "backfill", *narrow)
    assert told == "2 enqueued, 0 had run or were asked for before"
    told = cli.ok("cron", "backfill", *wanted, "--yes")
    assert told == "1 enqueued, 2 had run or were asked for before"
    kinds = [run["kind"] for run in json.loads(cli.ok("cron", "runs", "hourly", "-o", "json"))]
    assert kinds == ["backfill"] * 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("backfill", "hourly", "--since", "1990-01-01T00:00:00Z"), "more than 1000 instants"),
        (("backfill", "hourly", "--since", "1h"), "up to which it is decided"),
        (("backfill", "hourly"), "Missing option '--since'"),
        (("suspend", "hourly"), "Missing option '--reason'"),
        (("suspend", "hourly", "--reason", " "), "a reason is needed"),
        (("suspend", "hourly", "--reason", "x", "--until", "2020-01-01T00:00:00Z"), "has passed"),
        (("suspend", "hourly", "--reason", "x", "--until", "2030-01-01T00:00:00"), "no time zone"),
        (("suspend", "hurly", "--reason", "x"), "did you mean 'hourly'?"),
        (("resume", "hurly"), "did you mean 'hourly'?"),
        (("runs", "hurly"), "did you mean 'hourly'?"),
        (("run", "hourly", "--params", "[1]"), "has to be a JSON object"),
        (("run", "hourly", "--params", "{"), "not valid JSON"),
    ],
)
def test_what_is_refused_of_a_crontask(
    cli: CommandLine, arguments: tuple[str, ...], told: str
) -> None:
    asyncio.run(put_crontask(cli))
    assert told in cli.refused("cron", *arguments)
