"""The command line against a real server: what it prints, and how it refuses."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from tests.support.command_line import CommandLine
from tests.support.fixtures import namespace, redis_url, valkey
from tidework import Client, JobState, Settings
from tidework.broker.documents import RejectedDocument
from tidework.broker.redis.redis_broker import connect
from tidework.intake import read_document
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits

__all__ = ["namespace", "redis_url", "valkey"]


class Cli(CommandLine):
    """With a client of the same server and namespace beside it."""

    def __init__(self, redis_url: str, namespace: str) -> None:
        super().__init__(redis_url, namespace)
        self.client = Client(Settings(redis_url=redis_url, namespace=namespace))


@pytest.fixture
def cli(redis_url: str, namespace: str) -> Cli:
    return Cli(redis_url, namespace)


def test_enqueue_get_cancel_and_stats(cli: Cli) -> None:
    job_id = cli.ok("enqueue", "send", '{"to":"ada"}', "-q", "emails", "--delay", "60")
    found = json.loads(cli.ok("job", "get", job_id, "-q", "emails", "-o", "json"))
    assert (found["state"], found["task"], found["params"]) == ("scheduled", "send", {"to": "ada"})
    assert found["available_at"].endswith("+00:00")
    assert "state         scheduled" in cli.ok("job", "get", job_id, "-q", "emails")
    assert cli.ok("job", "cancel", job_id, "-q", "emails") == "cancelled"
    stats = json.loads(cli.ok("queue", "stats", "emails", "-o", "json"))
    assert (stats["cancelled"], stats["total_enqueued"]) == (1, 1)
    namespace = cli.client.settings.namespace
    assert f"{namespace}/emails" in cli.ok("queue", "list").splitlines()


def test_an_own_id_enqueues_once(cli: Cli) -> None:
    for _ in range(2):
        assert cli.ok("enqueue", "send", "--id", "mine") == "mine"
    assert cli.client.stats_sync("default").counters["enqueued"] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("enqueue", "send", "{bad"), "PARAMS: not valid JSON"),
        (("enqueue", "send", "to=bob"), """as in '{"to": "bob"}'"""),
        (("enqueu", "send"), "No such command 'enqueu'. Did you mean 'enqueue'?"),
        (("worker", "lst"), "No such command 'lst'. Did you mean 'list'?"),
        (("nonsense",), "No such command 'nonsense'."),
        (("dead", "list", "emails"), "a queue is given as --queue emails"),
        (("job", "get", "x", "emails"), "a queue is given as --queue emails"),
        (("cron", "next", "0", "8", "a", "b", "1-5"), "put it into quotes"),
        (("enqueue", "send", "[1]"), "for PARAMS: has to be a JSON object"),
        (("enqueue", "send", "[" * 10_000), "PARAMS: not valid JSON"),
        (("enqueue", "send", '{"n": NaN}'), "for PARAMS: not valid JSON: NaN"),
        (("enqueue", "no task!"), "for TASK: has to be"),
        (("enqueue", "send", "--id", "a b"), "for --id: has to be"),
        (("enqueue", "send", "--unique", "x" * 201), "for --unique: has to be"),
        (("enqueue", "send", "--delay", "1e12"), "for --delay: "),
        (("enqueue", "send", "--delay", "nan"), "nan is not a number of seconds"),
        (("enqueue", "send", "-q", "No_Label"), "DNS label"),
        (("job", "get", "nobody"), "not known in queue"),
        (("job", "cancel", "nobody"), "not known in queue"),
        (("cron", "run", "nothing"), "no CronTask 'nothing' is mirrored"),
        (("worker", "--app", "nothing_here"), "was not found"),
        (("scheduler", "nothing.yaml"), "nothing.yaml"),
        (("queue", "stats", "q", "--redis-url", "redis://127.0.0.1:1/0"), "cannot be reached"),
        (("queue", "stats", "q", "--redis-url", "nonsense"), "--redis-url"),
    ],
)
def test_bad_input_is_told(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    assert told in cli.refused(*arguments)


def test_dead_letters_are_listed_with_their_reason(cli: Cli) -> None:
    from tidework.broker.connection.transport import drive
    from tidework.broker.redis.redis_broker import connect_blocking
    from tidework.model.lease import ExchangeRequest, Settlement
    from tidework.model.outcome import JobError, Outcome

    job_id = cli.ok("enqueue", "send")
    queue = cli.client.queue("default")
    broker = connect_blocking(cli.client.settings.redis_url)
    (claimed,) = drive(broker.exchange(queue, ExchangeRequest("w", 1, 1))).claimed
    dead = Outcome.bury(JobError("ValueError", "boom\nmore"))
    settlement = Settlement(claimed.id, claimed.token, dead)
    drive(broker.exchange(queue, ExchangeRequest("w", 2, 0, (settlement,))))
    assert cli.ok("dead", "list") == f"{job_id}  send  ValueError: boom"
    assert cli.client.jobs_sync("default", JobState.DEAD).ids == (job_id,)
    (found,) = json.loads(cli.ok("dead", "list", "-o", "json"))
    assert found["error"] == "ValueError: boom\nmore (cause: exception)"


def test_crontasks_are_listed_and_run_by_hand(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text(
        textwrap.dedent(
            """
            apiVersion: tidework.dev/v1alpha1
            kind: TaskQueue
            metadata: {name: emails}
            spec: {app: shop}
            ---
            apiVersion: tidework.dev/v1alpha1
            kind: CronTask
            metadata: {name: yearly}
            spec: {queue: emails, task: send, params: {to: all}, schedule: "@yearly"}
            """
        )
    )
    with subprocess.Popen(
        [sys.executable, "-m", "tidework", "scheduler", str(tmp_path / "tasks.yaml")],
        env=cli.environment,
        stderr=subprocess.DEVNULL,
    ) as scheduler:
        try:
            listed = ""
            while "yearly" not in listed:
                assert scheduler.poll() is None
                listed = cli.ok("cron", "list")
            assert "@yearly (UTC)" in listed
            assert "next 20" in listed
            job_id = cli.ok("cron", "run", "yearly")
            record = cli.client.get_sync(job_id, queue="emails")
            assert record.state is JobState.READY
            assert json.loads(record.body)["params"] == {"to": "all"}
            (row,) = json.loads(cli.ok("cron", "list", "-o", "json"))
            assert (row["active"], row["last"], row["by_hand"]) == (1, None, 1)
            assert cli.ok("cron", "list").endswith("no fire yet, 1 run by hand")
            given = ("--params", '{"to": "ada"}', "--reason", "she asked", "--by", "bob")
            job_id = cli.ok("cron", "run", "yearly", *given)
            record = cli.client.get_sync(job_id, queue="emails")
            assert json.loads(record.body)["params"] == {"to": "ada"}
            newest, _ = json.loads(cli.ok("cron", "runs", "yearly", "-o", "json"))
            assert (newest["job"], newest["kind"]) == (job_id, "by_hand")
            assert (newest["note"], newest["outcome"]) == ("bob: she asked", None)
            assert job_id in cli.ok("cron", "runs", "yearly")
        finally:
            scheduler.terminate()
        assert scheduler.wait(timeout=30) == 0


def bury(cli: Cli, task: str, message: str) -> str:
    """A dead letter of ``task``; its id."""
    from tidework.broker.connection.transport import drive
    from tidework.broker.redis.redis_broker import connect_blocking
    from tidework.model.lease import ExchangeRequest, Settlement
    from tidework.model.outcome import JobError, Outcome

    job_id = cli.ok("enqueue", task)
    broker = connect_blocking(cli.redis_url)
    queue = cli.client.queue("default")
    worker = f"w.{job_id}"
    (held,) = drive(broker.exchange(queue, ExchangeRequest(worker, 1, 1))).claimed
    outcome = Outcome.bury(JobError("ValueError", message))
    settled = (Settlement(held.id, held.token, outcome),)
    drive(broker.exchange(queue, ExchangeRequest(worker, 2, 0, settled)))
    drive(broker.close())
    return held.id


def test_dead_letters_are_found_replayed_and_purged(cli: Cli) -> None:
    first, second = bury(cli, "send", "no route to 10.0.0.1"), bury(cli, "fetch", "gone")
    third = bury(cli, "send", "no route to 10.0.0.2")
    groups = json.loads(cli.ok("dead", "errors", "-o", "json"))
    assert [group["count"] for group in groups] == [2, 1]
    fingerprint = groups[0]["fingerprint"]
    assert fingerprint in cli.ok("dead", "errors")
    listed = cli.ok("dead", "list", "--error", fingerprint)
    assert first in listed
    assert third in listed
    assert second not in listed
    assert second in cli.ok("dead", "list", "--task", "fetch", "--since", "1h")
    assert cli.ok("dead", "list", "--until", "1h") == ""

    assert cli.ok("dead", "replay", "--error", fingerprint) == "2 replayed"
    assert cli.ok("dead", "purge", second) == "1 purged"
    assert cli.ok("dead", "list") == ""
    stats = cli.client.stats_sync("default")
    assert (stats.backlog, stats.counters["replayed"]) == (2, 2)
    partly = cli.run("dead", "replay", first, second)
    assert partly.returncode == 1
    assert partly.stderr.splitlines() == [f"{first}: not_dead", f"{second}: unknown"]


def test_bulk_commands_need_ids_or_a_filter_and_purge_asks(cli: Cli) -> None:
    assert "give job ids" in cli.refused("dead", "replay")
    assert "give job ids" in cli.refused("dead", "purge", "a", "--all")
    bury(cli, "send", "no")
    assert cli.run("dead", "purge", "--all").returncode != 0
    assert cli.ok("dead", "purge", "--all", "--yes") == "1 purged"
    assert "no time zone" in cli.refused("dead", "list", "--since", "2026-11-30T10:00:00")
    assert "15m, 2h, 7d" in cli.refused("dead", "list", "--since", "yesterday")
    for day in ("2026-11-30", "2026-11-30+01:00"):
        remedy = cli.refused("dead", "list", "--since", day).split("write ")[1].split()
        cli.ok("dead", "list", "--since", remedy[0])
        cli.ok("dead", "list", "--since", remedy[2])


def test_a_queue_is_paused_and_resumed(cli: Cli) -> None:
    cli.ok("enqueue", "send")
    assert cli.ok("queue", "pause", "default", "--reason", "mail is down") == "paused"
    assert cli.ok("queue", "pause", "default") == "it was paused already"
    assert "mail is down" in cli.ok("queue", "stats", "default")
    assert cli.ok("queue", "resume", "default") == "resumed"
    assert cli.ok("queue", "resume", "default") == "it was not paused"
    assert cli.run("queue", "pause", "default").stderr == ""


@pytest.mark.parametrize("command", ["stats", "pause"])
def test_a_mistyped_queue_is_told(cli: Cli, command: str) -> None:
    cli.ok("enqueue", "send", "-q", "emails")

    assert "emials never had a job" in cli.run("queue", command, "emials").stderr
    assert cli.run("queue", command, "emails").stderr == ""


def test_nothing_to_show_or_to_cancel_is_told(cli: Cli) -> None:
    job_id = cli.ok("enqueue", "send")

    assert "no dead letter" in cli.run("dead", "list").stderr
    assert "no dead letters" in cli.run("dead", "errors").stderr
    assert cli.run("job", "cancel", job_id).stderr == ""
    assert "had ended before" in cli.run("job", "cancel", job_id).stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("cron", "list"), "apply one, with `tidework dev`"),
        (("worker", "list"), "start one by `tidework worker --app MODULE`"),
        (("dead", "list"), "queue default has no dead letters; `tidework queue list` names all"),
        (("dead", "errors"), "queue default has no dead letters; `tidework queue list` names"),
        (("dead", "list", "--task", "x"), "`tidework dead list -q default` shows all"),
    ],
)
def test_an_empty_list_says_what_to_do_first(cli: Cli, command: tuple[str, ...], told: str) -> None:
    found = cli.run(*command)

    assert (found.returncode, found.stdout) == (0, "")
    assert told in found.stderr
    assert json.loads(cli.ok(*command, "-o", "json")) == []


def test_an_empty_server_says_what_to_do_first(cli: Cli, redis_url: str) -> None:
    empty = f"{redis_url.rpartition('/')[0]}/15"

    found = cli.run("queue", "list", "--redis-url", empty)

    assert (found.returncode, found.stdout) == (0, "")
    assert "this Redis knows no queue yet: start `tidework worker`" in found.stderr
    assert cli.ok("queue", "list", "--redis-url", empty, "-o", "json") == "[]"


def test_a_job_that_is_not_known_names_the_bounds_of_retention(cli: Cli) -> None:
    limits = QueueLimits()
    assert (limits.keep_count, limits.keep_succeeded, limits.keep_dead) == (
        10_000,
        timedelta(hours=1),
        timedelta(days=7),
    ), "as the error says it"

    for command in ("get", "cancel"):
        told = cli.refused("job", command, "nobody")
        assert "never enqueued there, or ended and deleted since" in told
        assert "the newest 10,000 ended jobs of each state (retention.count" in told
        assert "for an hour (succeededSeconds) and dead letters for 7 days (deadSeconds)" in told


@pytest.mark.parametrize("command", ["get", "cancel"])
def test_a_job_of_another_queue_is_told_as_such(cli: Cli, command: str) -> None:
    job_id = cli.ok("enqueue", "send", "-q", "emails")

    assert "but in queue 'emails': give --queue emails" in cli.refused("job", command, job_id)
    cli.ok("job", command, job_id, "-q", "emails")


def test_a_unique_key_admits_one_job(cli: Cli) -> None:
    first = cli.ok("enqueue", "send", "--unique", "invoice-7")
    assert cli.ok("enqueue", "send", "--unique", "invoice-7").splitlines()[0] == first
    refused = cli.refused("enqueue", "send", "--unique", "invoice-7", "--on-conflict", "error")
    assert f"held by job {first}" in refused


@pytest.mark.parametrize("raw", [b"[" * 10_000, b'{"id":"deep","x":' + b"[" * 10_000])
def test_a_dead_letter_that_nobody_can_read_is_shown_as_it_came(
    cli: Cli, redis_url: str, raw: bytes
) -> None:
    found = read_document(raw, 1.0)
    assert isinstance(found, RejectedDocument)
    letter = found.named or found.id
    queue = cli.client.queue("default")
    with redis.Redis.from_url(redis_url, protocol=2) as foreign:
        foreign.lpush(f"tw1:{{{queue}}}:inbox", raw)
    asyncio.run(take_in(redis_url, queue, found))

    (listed,) = json.loads(cli.ok("dead", "list", "-o", "json"))
    assert (listed["id"], listed["document"]) == (letter, raw.decode())
    assert json.loads(cli.ok("job", "get", letter, "-o", "json")) == listed
    assert raw.decode() in cli.ok("job", "get", letter)
    assert "nested more than 100 deep" in cli.ok("dead", "list")
    assert "nested more than 100 deep" in cli.ok("dead", "errors")
    (group,) = json.loads(cli.ok("dead", "errors", "-o", "json"))
    assert group["example"] == letter


async def take_in(redis_url: str, queue: QueueName, refused: RejectedDocument) -> None:
    """As a worker does."""
    broker = connect(redis_url)
    while not await broker.intake(queue, [], [], more=1):
        pass
    await broker.intake(queue, [], [refused])
    await broker.close()
