"""`tidework dev` with a commands file as the application: no Python, and edits are taken up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dev_process import DevProcess
from tidework import Client, Settings
from tidework.model.identity import new_job_id
from tidework.model.job import Job

pytestmark = pytest.mark.timeout(120)

QUEUE = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: reports}
spec: {app: jobs/commands.yaml, maxReplicas: 1}
---
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata: {name: often}
spec: {queue: reports, task: greet, every: 1s, maxRuns: 1}
"""
COMMANDS = """
commands:
  greet:
    command: [sh, greet.sh, good morning]
"""


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DevProcess]:
    # A folder is read: the commands file in it is none of its documents.
    (tmp_path / "queue.yaml").write_text(QUEUE)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "commands.yaml").write_text(COMMANDS)
    (tmp_path / "jobs" / "greet.sh").write_text('echo "\\"$1, attempt $TIDEWORK_ATTEMPT\\""\n')
    (tmp_path / "other.yaml").write_text(COMMANDS)
    found = DevProcess(tmp_path, ".")
    yield found
    found.end()


def test_commands_run_and_edits_are_taken_up(dev: DevProcess, tmp_path: Path) -> None:
    client = Client(Settings(redis_url=dev.wait_for("started")["redis_url"]))
    file = tmp_path / "jobs" / "commands.yaml"

    def greet() -> object:
        job = Job(new_job_id(), "greet", {}, created_at=1.8e9)
        client.enqueue_sync("reports", [job])
        return client.result_sync(job.id, queue="reports", timeout=40)

    fired = dev.wait_for("fired")
    assert client.result_sync(fired["job_id"], queue="reports", timeout=40) == (
        "good morning, attempt 1"
    )

    file.write_text(COMMANDS.replace("morning", "evening"))
    assert dev.wait_for("reloaded")["what"] == "the application's code"
    dev.wait_until(lambda: greet() == "good evening, attempt 1")

    file.write_text(COMMANDS.replace("command:", "comand:"))
    assert "did you mean command?" in dev.wait_for("refused")["error"]
    assert greet() == "good evening, attempt 1"
    file.write_text(COMMANDS)
    dev.wait_for("reloaded", count=2)
    dev.wait_until(lambda: greet() == "good morning, attempt 1")
    assert "Traceback" not in dev.stderr
