"""The command line against a real server: what it prints, and how it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.fixtures import namespace, redis_url, valkey
from tidework import Client, JobState, Settings

__all__ = ["namespace", "redis_url", "valkey"]


class Cli:
    """Runs `tidework` with a server and a namespace."""

    def __init__(self, redis_url: str, namespace: str) -> None:
        self.environment = {**os.environ, "TIDEWORK_REDIS_URL": redis_url}
        self.environment["TIDEWORK_NAMESPACE"] = namespace
        self.client = Client(Settings(redis_url=redis_url, namespace=namespace))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tidework", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ok(self, *arguments: str) -> str:
        ended = self.run(*arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def refused(self, *arguments: str) -> str:
        ended = self.run(*arguments)
        assert ended.returncode == 2
        assert "Traceback" not in ended.stderr
        return ended.stderr


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
        (("enqueue", "send", "[1]"), "has to be a JSON object"),
        (("enqueue", "no task!"), "task"),
        (("enqueue", "send", "--id", "a b"), "id"),
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
    from tidework.broker.redis import connect_blocking
    from tidework.broker.transport import drive
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
            assert (row["active"], row["last"]) == (1, None)
        finally:
            scheduler.terminate()
        assert scheduler.wait(timeout=30) == 0
