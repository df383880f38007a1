"""Starts, good and bad: applications that do not import, threads, several queues, presence."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.diary import Diary
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import APPS, KEPT
from tests.support.process_tree import command_of
from tests.support.waiting import until, wait_until
from tidework.broker.redis.redis_broker import connect
from tidework.model.identity import QueueName


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("broken", ["broken", "a_module_that_does_not_exist"]),
        ("leaving", ["leaving", "exit code 3"]),
        ("no_such_module", ["no_such_module"]),
        ("hostile:nothing", ["nothing"]),
        ("", ["--app"]),
    ],
)
def test_an_application_that_cannot_be_used(
    start_worker: StartWorker, app: str, words: list[str]
) -> None:
    worker = start_worker(app, log_format="human")

    assert worker.wait() == 2

    said = [line for line in worker.text().splitlines() if line.startswith("tidework worker:")]
    assert len(said) == 1, worker.text()
    assert all(word in worker.text() for word in words)


def test_a_worker_of_another_queue_than_its_tasks_says_so(start_worker: StartWorker) -> None:
    worker = start_worker(queue=["jbos"])

    worker.wait_started()

    line = worker.wait_event("queue_without_tasks")
    assert line["level"] == "warning"
    assert "they are declared for jobs; did you mean 'jobs'?" in line["message"]


def test_a_taken_probe_port(start_worker: StartWorker) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        worker = start_worker(log_format="human", probe_port=port)

        assert worker.wait() == 2

    assert f"tidework worker: the probes cannot listen on 127.0.0.1:{port}" in worker.text()


def test_an_application_with_threads_is_imported_by_each_child(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("threads", slots=2).wait_started()

    found = jobs.result(jobs.put("whoami"))

    assert found["pid"] in worker.children(2)
    assert "stubborn" in found["threads"], "its thread lives there, which a fork would not give"
    (warning,) = [line for line in worker.lines() if "threads" in line]
    assert warning["threads"] == "stubborn"


def test_connections_that_all_children_would_share_are_told(
    start_worker: StartWorker, redis_url: str
) -> None:
    worker = start_worker("connections", slots=2).wait_started()

    (warning,) = [line for line in worker.lines() if "peers" in line]
    address = urlsplit(redis_url)
    assert warning["peers"] == f"{address.hostname}:{address.port}", "the others do no harm"
    assert warning["level"] == "warning"


def test_an_enqueue_at_import_is_no_connection_that_children_share(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker("connections", worker_name="own", slots=2).wait_started()

    assert jobs.result(jobs.put("add", a=1, b=2)) == 3
    assert not [line for line in worker.lines() if "peers" in line]


def test_several_queues_share_the_slots(start_worker: StartWorker, jobs: Jobs) -> None:
    start_worker(queue=["jobs", "more"], slots=2).wait_started()
    others = Jobs(jobs.client, "more")

    ids = [jobs.put("add", a=n, b=0) for n in range(20)]
    more = [others.put("add", a=n, b=100) for n in range(20)]

    assert [jobs.result(job_id) for job_id in ids] == list(range(20))
    assert [others.result(job_id) for job_id in more] == list(range(100, 120))


def test_each_of_many_idle_queues_is_listened_to(start_worker: StartWorker, jobs: Jobs) -> None:
    """More than there are connections for ordinary requests."""
    names = [f"q{number}" for number in range(40)]
    worker = start_worker(queue=["jobs", *names], slots=2).wait_started()
    last = Jobs(jobs.client, names[-1])
    wait_until(lambda: last.listeners() >= len(names) + 1, "all queues are listened to")

    ids = [Jobs(jobs.client, name).put("add", a=1, b=2) for name in names]

    for name, job_id in zip(names, ids, strict=True):
        assert Jobs(jobs.client, name).result(job_id) == 3
    assert worker.metric("tidework_redis_errors_total") == 0


async def test_presence_says_who_works_on_what(
    start_worker: StartWorker, redis_url: str, namespace: str
) -> None:
    queue = QueueName(namespace, "jobs")
    broker = connect(redis_url)
    worker = start_worker(slots=3, worker_name="me").wait_started()
    try:
        present = await until(lambda: broker.workers(queue), "it is present")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
        after = await broker.workers(queue)
    finally:
        await broker.close()

    (found,) = present
    document: Mapping[str, Any] = found.document
    assert found.incarnation.startswith("me.")
    assert document["pid"] == worker.pid
    assert (document["slots"], document["busy"], document["draining"]) == (3, 0, False)
    assert document["queues"] == ["jobs"]
    assert document["processed"] == 0
    assert after == ()


def test_one_id_is_found_in_every_line_about_a_job(start_worker: StartWorker, jobs: Jobs) -> None:
    worker = start_worker().wait_started()

    job_id = jobs.put("fail", reason="twice")
    jobs.wait_dead(job_id)

    def told() -> list[tuple[str, int]]:
        lines = [line for line in worker.lines() if line.get("job_id") == job_id]
        return [(line["event"], line["attempt"]) for line in lines]

    wait_until(lambda: len(told()) == 4, "both attempts are told of")
    assert told() == [
        ("job_claimed", 1),
        ("job_retried", 1),
        ("job_claimed", 2),
        ("job_buried", 2),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every template starts afresh")
def test_the_first_template_is_a_fork_of_the_worker_and_has_nothing_of_it(
    start_worker: StartWorker, jobs: Jobs
) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    worker = start_worker(pass_fds=(writing,)).wait_started()
    os.close(writing)
    first = worker.template()

    assert command_of(first) == command_of(worker.pid)
    assert os.getsid(first) == first
    # It holds a child's pipe, too, for the moment in which it forks the child.
    wait_until(lambda: not shared_pipes(first, worker.pid), "none of the worker's files stay open")
    assert shared_memory_mib(worker.pid) > 5, "what both imported lies in memory once"

    os.kill(first, signal.SIGKILL)

    wait_until(lambda: worker.template() != first, "another one")
    wait_until(
        lambda: "tidework.worker.child.template" in command_of(worker.template()), "a fresh one"
    )
    assert jobs.result(jobs.put("whoami"))
    os.close(reading)


def shared_pipes(*pids: int) -> set[str]:
    """And what else is neither a file with a name nor a socket, open in all of them."""
    names = set.intersection(*(open_files(pid) for pid in pids))
    return {name for name in names if not name.startswith(("/", "socket:"))}


def open_files(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.add(str(entry.readlink()))
    return found


def shared_memory_mib(pid: int) -> float:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) / 1024 for row in rows if row.startswith("Shared_Dirty:"))


def test_what_jobs_ask_of_redis_goes_where_the_worker_s_options_say(
    jobs: Jobs, redis_url: str, namespace: str, folder: Path
) -> None:
    """Nothing of it is in the environment."""
    options = ["--app", "long", "--queue", "jobs", "-n", namespace, "--redis-url", redis_url]
    Diary(folder).let_pass(2)
    job_id = jobs.put("walk", folder=str(folder), count=2)

    with subprocess.Popen(
        [sys.executable, "-m", "tidework", "worker", *options],
        cwd=APPS,
        env={name: os.environ[name] for name in KEPT if name in os.environ},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as worker:
        try:
            assert jobs.result(job_id) == 2
        finally:
            worker.terminate()

    assert jobs.get(job_id).deliveries == 1
    assert worker.returncode == 0


def test_what_its_parent_has_blocked_reaches_a_worker(
    start_worker: StartWorker, jobs: Jobs, tmp_path: Path
) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        worker = start_worker("menaces")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    dead = jobs.wait_dead(jobs.put("spin_in_python", path=str(tmp_path / "file")))

    assert dead.error is not None
    assert dead.error.cause == "timeout", "the worker hears that its child has ended"
    worker.process.terminate()
    assert worker.wait() == 0
