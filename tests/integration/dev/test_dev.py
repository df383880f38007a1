"""`tidework dev` as its user meets it: good days, edits, bad input, two Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.dev_process import DevProcess
from tests.support.process_tree import is_alive
from tests.support.servers import ValkeyServer
from tidework import Client, JobState, Settings
from tidework.errors import JobFailedError
from tidework.model.identity import new_job_id
from tidework.model.job import Job

pytestmark = pytest.mark.timeout(120)

APP = """
import time
from tidework import Tidework

app = Tidework("shop", queue="emails")

@app.task(max_attempts=2, delays=[0.1])
def send(to: str) -> str:
    return "sent to " + to

@app.task
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"

@app.task(max_attempts=2, delays=[0.1])
def fail() -> None:
    raise ValueError("no such luck")
"""

QUEUE = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: emails}
spec:
  app: shop
  slots: 2
  maxReplicas: 2
  scaling: {idleSeconds: 2}
"""

CRON = """
---
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata: {name: often}
spec: {queue: emails, task: send, params: {to: cron}, every: 1s, maxRuns: 2}
"""

Start = Callable[..., DevProcess]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "shop.yaml").write_text(QUEUE)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    running: list[DevProcess] = []

    def run(*arguments: str) -> DevProcess:
        found = DevProcess(folder, *(arguments or ("shop.yaml",)))
        running.append(found)
        return found

    yield run
    for found in running:
        found.end()


def client_of(dev: DevProcess) -> Client:
    return Client(Settings(redis_url=dev.wait_for("started")["redis_url"]))


def put(client: Client, task: str, **params: object) -> str:
    job = Job(new_job_id(), task, params, created_at=1.8e9)
    client.enqueue_sync("emails", [job])
    return job.id


def result_of(client: Client, job_id: str) -> object:
    return client.result_sync(job_id, queue="emails", timeout=40)


def test_workers_rise_from_zero_and_go_back(start: Start) -> None:
    dev = start()
    client = client_of(dev)
    assert dev.supervisors() == []
    assert result_of(client, put(client, "send", to="ada")) == "sent to ada"
    up = dev.wait_for("scaled", before=0)
    assert up["after"] == 1
    assert "1 waiting" in up["reason"]
    down = dev.wait_for("scaled", after=0)
    assert down["reason"]
    dev.wait_until(lambda: dev.supervisors() == [])
    everything = dev.tree()
    assert dev.interrupt() == 0
    assert dev.wait_for("stopped")["reason"] == "SIGINT"
    assert not any(is_alive(pid) for pid in everything)
    assert "Traceback" not in dev.stderr


def test_a_crontask_fires_and_ends_with_max_runs(folder: Path, start: Start) -> None:
    (folder / "shop.yaml").write_text(QUEUE + CRON)
    dev = start()
    client = client_of(dev)
    fired = dev.wait_for("fired", count=2)
    assert (fired["crontask"], fired["verdict"]) == ("often", "enqueued")
    assert result_of(client, fired["job_id"]) == "sent to cron"
    assert client.stats_sync("emails").counters["enqueued"] == 2


def test_an_edited_document_is_taken_up_and_a_wrong_one_is_refused(
    folder: Path, start: Start
) -> None:
    dev = start()
    client = client_of(dev)
    (folder / "shop.yaml").write_text(QUEUE.replace("maxReplicas", "maxReplica"))
    refused = dev.wait_for("refused")
    assert "shop.yaml:8: spec.maxReplica" in refused["error"]
    assert "maxReplicas" in refused["error"]
    assert result_of(client, put(client, "send", to="bob")) == "sent to bob"
    (folder / "shop.yaml").write_text(QUEUE + CRON)
    dev.wait_for("reloaded")
    dev.wait_for("fired", count=2)
    (folder / "shop.yaml").write_text(QUEUE.replace("{name: emails}", "{name: letters}"))
    dev.wait_for("reloaded", count=2)
    dev.wait_until(lambda: dev.supervisors() == [])


def test_edited_code_runs_in_new_workers(folder: Path, start: Start) -> None:
    dev = start()
    client = client_of(dev)
    assert result_of(client, put(client, "send", to="eve")) == "sent to eve"
    (folder / "shop.py").write_text(APP.replace("sent to", "mailed to"))
    dev.wait_for("reloaded")
    dev.wait_until(lambda: result_of(client, put(client, "send", to="eve")) == "mailed to eve")


def test_bad_jobs_become_dead_letters_with_the_reason(start: Start) -> None:
    dev = start()
    client = client_of(dev)
    inbox = "tw1:{default/emails}:inbox"
    import redis

    with redis.Redis.from_url(client.settings.redis_url) as foreign:
        foreign.lpush(inbox, b"{not json", b'{"params":{}}', b'{"task":"send","unique":{}}')
        foreign.lpush(inbox, b'{"task":"send","params":{"to":"php"},"id":"php-1"}')
    dev.wait_until(lambda: client.stats_sync("emails").inbox == 0)
    assert result_of(client, "php-1") == "sent to php"
    for job_id, told in (
        (put(client, "send", too="x"), "to: Field required"),
        (put(client, "send", to=["a"]), "valid string"),
        (put(client, "fail"), "ValueError: no such luck"),
    ):
        with pytest.raises(JobFailedError, match=told):
            result_of(client, job_id)
    dev.wait_until(lambda: client.stats_sync("emails").states[JobState.DEAD] == 6)
    dead = client.jobs_sync("emails", JobState.DEAD).ids
    errors = [client.get_sync(found, queue="emails").error for found in dead]
    reasons = sorted(error.message for error in errors if error and error.cause == "invalid")
    assert len(reasons) == 3, errors
    assert "not valid JSON" in reasons[0]
    assert any(reason.startswith("task:") for reason in reasons)
    assert any(reason.startswith("unique.key:") for reason in reasons)


def test_an_unknown_task_waits_for_a_worker_that_knows_it(start: Start) -> None:
    dev = start()
    client = client_of(dev)
    job_id = put(client, "brand_new")
    dev.wait_until(lambda: client.get_sync(job_id, queue="emails").releases >= 1)
    record = client.get_sync(job_id, queue="emails")
    assert record.state in (JobState.SCHEDULED, JobState.READY, JobState.RUNNING)
    assert record.losses == 0


def test_an_unknown_task_starts_one_worker_and_one_more_when_the_code_has_changed(
    folder: Path, start: Start
) -> None:
    dev = start()
    client = client_of(dev)
    job_id = put(client, "sedn")
    down = dev.wait_for("scaled", after=0)
    assert "1 job waits for a worker that knows its task 'sedn'" in down["reason"]
    assert "unknown task 'sedn'; did you mean 'send'?" in dev.stderr
    # Due again, and ready: that starts nobody.
    dev.wait_until(lambda: client.get_sync(job_id, queue="emails").state is JobState.READY)
    (folder / "shop.py").write_text(APP + "\n@app.task\ndef sedn() -> str:\n    return 'known'\n")
    assert result_of(client, job_id) == "known"
    assert len(dev.find("scaled", before=0)) == 2
    assert client.get_sync(job_id, queue="emails").attempt == 1


def test_an_app_that_does_not_import_is_told_and_comes_up_when_mended(
    folder: Path, start: Start
) -> None:
    (folder / "shop.py").write_text("import nothing_of_that_name\n" + APP)
    dev = start()
    client = client_of(dev)
    job_id = put(client, "send", to="ada")
    dev.wait_for("worker_exited")
    dev.wait_until(lambda: "does not import: ModuleNotFoundError" in dev.stderr)
    (folder / "shop.py").write_text(APP)
    assert result_of(client, job_id) == "sent to ada"


def test_the_first_ctrl_c_waits_for_jobs_and_the_second_hands_them_back(
    folder: Path, start: Start
) -> None:
    arguments = ("shop.yaml", "--data-dir", "data")
    dev = start(*arguments)
    client = client_of(dev)
    short = put(client, "nap", seconds=2)
    dev.wait_until(lambda: client.get_sync(short, queue="emails").state is JobState.RUNNING)
    dev.process.send_signal(signal.SIGINT)
    assert dev.process.wait(timeout=40) == 0
    dev.end()

    dev = start(*arguments)
    client = client_of(dev)
    assert client.get_sync(short, queue="emails").result == "rested"
    long = put(client, "nap", seconds=600)
    dev.wait_until(lambda: client.get_sync(long, queue="emails").state is JobState.RUNNING)
    dev.process.send_signal(signal.SIGINT)
    dev.wait_for("draining")
    dev.process.send_signal(signal.SIGINT)
    assert dev.process.wait(timeout=40) == 0
    assert "Traceback" not in dev.stderr
    dev.end()

    dev = start(*arguments)
    client = client_of(dev)
    record = client.get_sync(long, queue="emails")
    assert (record.losses, record.releases) == (0, 1)
    client.cancel_sync(long, queue="emails")


def test_a_data_folder_is_used_by_one_at_a_time(folder: Path, start: Start) -> None:
    dev = start("shop.yaml", "--data-dir", "data")
    dev.wait_for("started")
    second = run_dev(folder, "shop.yaml", "--data-dir", "data")
    assert second.returncode == 2
    assert "in use by another" in second.stderr


def test_another_server_can_be_used(start: Start) -> None:
    with ValkeyServer() as server:
        dev = start("shop.yaml", "--redis-url", server.url)
        client = client_of(dev)
        assert client.settings.redis_url == server.url
        assert result_of(client, put(client, "send", to="ada")) == "sent to ada"
        assert dev.interrupt() == 0


def run_dev(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidework", "dev", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (QUEUE.replace("slots: 2", "slot: 2"), "shop.yaml:7: spec.slot"),
        (QUEUE.replace("maxReplicas: 2", "maxReplicas: -1"), "shop.yaml:8: spec.maxReplicas"),
        (QUEUE + CRON.replace("queue: emails", "queue: mails"), "shop.yaml:15: spec.queue"),
        (QUEUE + CRON.replace("every: 1s", "schedule: '61 * * * *'"), "spec.schedule"),
        ("a: [", "shop.yaml:"),
        ("", "shop.yaml"),
    ],
)
def test_wrong_documents_are_told_with_file_line_and_field(
    folder: Path, document: str, told: str
) -> None:
    (folder / "shop.yaml").write_text(document)
    ended = run_dev(folder, "shop.yaml")
    assert ended.returncode == 2
    assert told in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_that_cannot_serve_is_told(folder: Path) -> None:
    with ValkeyServer(None, "--requirepass", "secret") as server:
        ended = run_dev(folder, "shop.yaml", "--redis-url", server.url)
    assert ended.returncode == 2
    assert "redis://USER:PASSWORD@" in ended.stderr
    ended = run_dev(folder, "shop.yaml", "--redis-url", server.url)
    assert ended.returncode == 2
    assert "cannot be reached" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_missing_file_is_told(folder: Path) -> None:
    ended = run_dev(folder, "nothing.yaml")
    assert ended.returncode == 2
    assert "nothing.yaml" in ended.stderr
    assert textwrap.dedent(ended.stdout) == ""
