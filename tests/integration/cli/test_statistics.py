"""What the command line shows of the statistics of a queue."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import CommandLine
from tests.support.fixtures import namespace, redis_url, valkey
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, RunTimes, Settlement
from tidework.model.outcome import Outcome
from tidework.model.statistics import bucket_of

__all__ = ["namespace", "redis_url", "valkey"]


@pytest.fixture
def cli(redis_url: str, namespace: str) -> CommandLine:
    """Beside a queue in which a job ran for a quarter of a second."""
    queue = QueueName(namespace, "emails")
    broker = connect_blocking(redis_url)
    try:
        drive(broker.enqueue(queue, [Job("a", "send", {})]))
        (job,) = drive(broker.exchange(queue, ExchangeRequest("w", 1, 1))).claimed
        end = Settlement(job.id, job.token, Outcome.complete())
        served = {"send": RunTimes(1, 0.25, {bucket_of(0.25): 1})}
        drive(broker.exchange(queue, ExchangeRequest("w", 2, 0, (end,), served=served)))
    finally:
        drive(broker.close())
    return CommandLine(redis_url, namespace)


def test_stats_tell_how_the_tasks_of_a_queue_did(cli: CommandLine) -> None:
    tasks = json.loads(cli.ok("queue", "stats", "emails", "-o", "json"))["tasks"]

    assert tasks.keys() == {"(all)", "send"}
    found = tasks["send"]["last_hour"]
    assert tasks["send"]["last_day"] == tasks["(all)"]["last_hour"] == found
    assert (found["enqueued"], found["started"], found["succeeded"]) == (1, 1, 1)
    assert (found["failed"], found["success_rate"]) == (0, 1.0)
    assert found["run_seconds"]["mean"] == 0.25
    assert found["run_seconds"]["p95"] == pytest.approx(0.25, rel=0.42)
    table = cli.ok("queue", "stats", "emails").splitlines()
    (row,) = [line.split() for line in table if line.startswith("send")]
    assert row[:9] == ["send", "hour", "1", "1", "0", "0", "0", "100", "%"]


@pytest.mark.parametrize("by", ["minute", "hour", "day"])
def test_a_trend_has_a_line_for_each_time_in_which_something_happened(
    cli: CommandLine, by: str
) -> None:
    points = json.loads(cli.ok("queue", "trend", "emails", "--by", by, "-o", "json"))
    assert sum(point["succeeded"] for point in points) == 1
    title, *lines = cli.ok("queue", "trend", "emails", "--by", by, "--task", "send").splitlines()
    assert title.split()[:3] == ["SINCE", "ENQUEUED", "SUCCEEDED"]
    assert len(lines) == len(points)


def test_a_trend_of_nothing_says_so(cli: CommandLine) -> None:
    found = cli.run("queue", "trend", "emails", "--task", "sendd")

    assert (found.returncode, found.stdout) == (0, "")
    assert "nothing was counted of sendd in queue emails; did you mean 'send'?" in found.stderr
