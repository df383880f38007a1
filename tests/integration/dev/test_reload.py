"""Edits under `tidework dev`: what is loaded is tried out first, and what is not, is left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dev_process import DevProcess
from tidework import Client, JobState, Settings
from tidework.model.identity import new_job_id
from tidework.model.job import Job

pytestmark = pytest.mark.timeout(120)

APP = """
import time
from pathlib import Path
from tidework import Tidework

app = Tidework("shop", queue="emails")

@app.task
def send(to: str) -> str:
    from letters import greeting
    return greeting + to

@app.task
def wait_for(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.05)
    return "old"
"""

DOCUMENTS = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: emails}
spec: {app: shop, slots: 2, minReplicas: 1, maxReplicas: 1}
"""

CRON = """
---
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata: {name: often}
spec: {queue: emails, task: send, params: {to: cron}, every: 1h}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "letters.py").write_text("greeting = 'dear '")
    (tmp_path / "scratch.py").write_text("")
    (tmp_path / "shop.yaml").write_text(DOCUMENTS)
    return tmp_path


@pytest.fixture
def dev(folder: Path) -> Iterator[DevProcess]:
    found = DevProcess(folder, "shop.yaml")
    try:
        found.wait_for("started")
        yield found
    finally:
        found.end()


def client_of(dev: DevProcess) -> Client:
    return Client(Settings(redis_url=dev.wait_for("started")["redis_url"]))


def put(client: Client, task: str, **params: object) -> str:
    job = Job(new_job_id(), task, params, created_at=1.8e9)
    client.enqueue_sync("emails", [job])
    return job.id


def result_of(client: Client, job_id: str) -> object:
    return client.result_sync(job_id, queue="emails", timeout=40)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("def (", "does not import: SyntaxError"),
        ("import nothing_of_that_name", "does not import: ModuleNotFoundError"),
        ("app = 7", "holds no Tidework app"),
    ],
)
def test_a_broken_save_ends_no_worker(
    folder: Path, dev: DevProcess, broken: str, told: str
) -> None:
    client = client_of(dev)
    flag = folder / "go on"
    running = put(client, "wait_for", path=str(flag))
    dev.wait_until(lambda: client.get_sync(running, queue="emails").state is JobState.RUNNING)
    workers = dev.supervisors()

    (folder / "shop.py").write_text(broken)

    refused = dev.wait_for("refused")
    assert told in refused["error"]
    assert "what ran before goes on" in refused["error"]
    assert result_of(client, put(client, "send", to="ada")) == "dear ada"
    flag.touch()
    assert result_of(client, running) == "old"
    assert dev.supervisors() == workers
    (folder / "shop.py").write_text(APP.replace('return "old"', 'return "new"'))
    dev.wait_for("reloaded")
    dev.wait_until(lambda: result_of(client, put(client, "wait_for", path=str(flag))) == "new")
    assert not dev.find("worker_exited")


def test_a_file_beside_the_application_reloads_nothing(folder: Path, dev: DevProcess) -> None:
    dev.wait_until(lambda: "worker started" in dev.stderr)
    workers = dev.supervisors()
    (folder / "scratch.py").write_text("1 / 0")
    (folder / "new.py").write_text("def (")
    # Told behind it: what was edited before has been looked at.
    (folder / "shop.yaml").write_text(DOCUMENTS + CRON)
    dev.wait_for("reloaded", what="the documents")
    assert dev.supervisors() == workers
    assert not dev.find("reloaded", what="the application's code")
    assert not dev.find("refused")

    # A module that only a function imports is part of it.
    (folder / "letters.py").write_text("greeting = 'hello '")
    dev.wait_for("reloaded", what="the application's code")
    client = client_of(dev)
    dev.wait_until(lambda: result_of(client, put(client, "send", to="ada")) == "hello ada")


def test_code_that_the_crontasks_do_not_fit_replaces_nothing(folder: Path, dev: DevProcess) -> None:
    (folder / "shop.yaml").write_text(DOCUMENTS + CRON)
    dev.wait_for("reloaded")
    (folder / "shop.py").write_text(APP.replace("def send(", "def post("))
    refused = dev.wait_for("refused")
    assert "spec.task: the application has no task 'send'" in refused["error"]
    client = client_of(dev)
    assert result_of(client, put(client, "send", to="ada")) == "dear ada"
    (folder / "shop.yaml").write_text(DOCUMENTS + CRON.replace("task: send", "task: post"))
    dev.wait_for("reloaded", what="the application's code")
    assert result_of(client, put(client, "post", to="ada")) == "dear ada"


@pytest.mark.parametrize(
    ("crontask", "told"),
    [
        (CRON.replace("task: send", "task: sned"), "shop.yaml:11: spec.task: the application has"),
        (CRON.replace("{to: cron}", "{too: x}"), "shop.yaml:11: spec.params: task 'send' does not"),
    ],
)
def test_a_crontask_that_could_not_run_is_told_at_the_start(
    folder: Path, crontask: str, told: str
) -> None:
    (folder / "shop.yaml").write_text(DOCUMENTS + crontask)
    ended = subprocess.run(
        [sys.executable, "-m", "tidework", "dev", "shop.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not ended.stdout
