"""A running worker and `tidework worker list | get | drain | stacks` beside it."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.command_line import CommandLine
from tests.support.waiting import wait_until
from tidework.model.job import JobState


class Cli(CommandLine):
    """Runs `tidework worker ...`."""

    def get(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ok("get", name, "-o", "json"))
        return found

    def wait_seen(self, name: str) -> dict[str, Any]:
        """Until it has beaten."""
        wait_until(lambda: self.run("get", name).returncode == 0, f"{name} is seen")
        return self.get(name)


@pytest.fixture
def cli(redis_url: str, namespace: str) -> Cli:
    return Cli(redis_url, namespace, "worker")


def hold(jobs: Jobs, path: Path) -> str:
    job_id = jobs.put("hold", path=str(path))
    wait_until(path.with_suffix(".began").exists, "the job runs")
    return job_id


def test_a_worker_and_what_its_slots_run(
    cli: Cli, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(slots=3, worker_name="me").wait_started()
    job_id = hold(jobs, folder / "a")
    cli.wait_seen("me")
    # What it says is as old as its last beat; one that is asked for something beats again.
    cli.ok("stacks", "me")
    found = cli.get("me")

    assert (found["state"], found["slots"], found["busy"]) == ("working", 3, 1)
    assert found["pid"] == worker.pid
    assert found["cordoned_by"] == []
    (job,) = found["jobs"]
    assert (job["id"], job["task"], job["attempt"]) == (job_id, "hold", 1)
    assert job["child"] in worker.children(3)
    assert job["since"].endswith("+00:00")
    text = cli.ok("get", found["incarnation"]).splitlines()
    assert text[-1] == "free slots: 2"
    assert text[-2].split()[1:5] == [job_id, "hold", "jobs", "1"]
    head, row = cli.ok("list").splitlines()
    assert head.split()[:3] == ["NAME", "STATE", "QUEUES"]
    assert row.split()[:5] == [found["incarnation"], "working", "jobs", "3", "1"]
    assert cli.ok("list", "-q", "nobody", "-o", "json") == "[]"
    (folder / "a.go").touch()


def test_a_drained_worker_ends_what_it_holds_and_claims_nothing(
    cli: Cli, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    start_worker(slots=2, worker_name="me").wait_started()
    running = hold(jobs, folder / "a")
    cli.wait_seen("me")

    assert "claims nothing more" in cli.ok("drain", "me")
    assert "was cordoned already" in cli.ok("drain", "me")

    (folder / "a.go").touch()
    assert jobs.result(running) == "held"
    waiting = jobs.put("add", a=1, b=1)
    other = start_worker(worker_name="other").wait_started()
    assert jobs.result(waiting) == 2
    assert other.metric("tidework_jobs_claimed_total") == 1
    assert cli.get("me")["state"] == "cordoned"
    assert "me." in cli.ok("list")
    assert "by a person: it claims nothing" in cli.ok("list")
    other.signal(signal.SIGTERM)
    other.wait()
    left = jobs.put("add", a=2, b=2)
    assert jobs.get(left).state is JobState.READY
    assert "may claim again" in cli.ok("drain", "me", "--undo")
    assert jobs.result(left) == 4
    assert "was not cordoned by a person" in cli.ok("drain", "me", "--undo")


def test_a_worker_that_ends_takes_its_cordon_along(
    cli: Cli, start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker(worker_name="me").wait_started()
    cli.wait_seen("me")
    cli.ok("drain", "me")

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert "no worker 'me' has been seen" in cli.refused("drain", "me", "--undo")
    assert "seen: none" in cli.refused("get", "me")
    start_worker(worker_name="me").wait_started()
    assert jobs.result(jobs.put("add", a=1, b=1)) == 2


def test_two_ask_for_stacks_at_once(
    cli: Cli, start_worker: StartWorker, jobs: Jobs, folder: Path
) -> None:
    worker = start_worker(worker_name="me").wait_started()
    job_id = hold(jobs, folder / "a")
    cli.wait_seen("me")

    with ThreadPoolExecutor() as people:
        texts = list(people.map(lambda _: cli.ok("stacks", "me"), range(2)))

    for text in texts:
        assert f"== child (pid {worker.children()[0]}, slot 0) hold {job_id}" in text
        assert "in hold" in text
        assert f"== supervisor (pid {worker.pid})" in text
    assert worker.events("stacks_reported"), "they are in the log as well"
    found = json.loads(cli.ok("stacks", "me", "-o", "json"))
    assert [each["process"] for each in found["processes"]] == ["supervisor", "template", "child"]
    (folder / "a.go").touch()


def test_idle_workers_are_woken_to_tell_their_stacks(cli: Cli, start_worker: StartWorker) -> None:
    # With such a lease there are the beats, every 10 s, and what wakes it.
    workers = [start_worker(worker_name=f"idle-{n}", lease_seconds=600) for n in range(3)]
    for worker in workers:
        worker.wait_started()
        cli.wait_seen(worker.name)
    for worker in workers:
        cli.ok("stacks", worker.name)  # brings a beat, so that the next one is far

        text = cli.ok("stacks", worker.name, "--timeout", "8")

        assert f"== supervisor (pid {worker.pid})" in text


def test_a_worker_that_stands_still_or_died(
    cli: Cli, start_worker: StartWorker, jobs: Jobs
) -> None:
    worker = start_worker(worker_name="me").wait_started()
    cli.wait_seen("me")
    worker.signal(signal.SIGSTOP)

    assert "no answer came within 1 s" in cli.refused("stacks", "me", "--timeout", "1")
    assert "claims nothing more" in cli.ok("drain", "me")

    worker.signal(signal.SIGKILL)
    worker.wait()
    assert "no answer came within 1 s" in cli.refused("stacks", "me", "--timeout", "1")


def wait_beat(worker: WorkerProcess) -> None:
    wait_until(lambda: worker.metric("tidework_worker_last_heartbeat_timestamp_seconds"), "a beat")


def test_several_queues_one_worker(cli: Cli, start_worker: StartWorker, jobs: Jobs) -> None:
    wait_beat(start_worker(queue=["jobs", "more"], worker_name="me").wait_started())
    more = Jobs(jobs.client, "more")
    wait_until(lambda: "more" in cli.ok("get", "me"), "both queues know it")

    cli.ok("drain", "me")

    waiting = [jobs.put("add", a=1, b=1), more.put("add", a=1, b=1)]
    cli.ok("stacks", "me", "-q", "more")
    assert [jobs.get(waiting[0]).state, more.get(waiting[1]).state] == [JobState.READY] * 2
    assert json.loads(cli.ok("list", "-o", "json"))[0]["queues"] == cli.get("me")["queues"]
    cli.ok("drain", "me", "--undo")
    assert [jobs.result(waiting[0]), more.result(waiting[1])] == [2, 2]
