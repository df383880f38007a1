"""Long jobs in real workers: they say how far they are, and go on where they stood."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.worker.conftest import StartWorker
from tests.integration.worker.diary import Diary
from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess, is_alive
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.client import Client
from tidework.model.backlog import JobRecord
from tidework.model.job import JobState
from tidework.settings import Settings

both = pytest.mark.parametrize("task", ["walk", "walk_async"])
PLACES = {"walk": {"slots": 1}, "walk_async": {"async_slots": 2}}


@pytest.fixture
def diary(folder: Path) -> Diary:
    return Diary(folder)


@pytest.fixture
def start(start_worker: StartWorker) -> Callable[..., WorkerProcess]:
    def begin(**settings: object) -> WorkerProcess:
        return start_worker("long", **settings).wait_started()

    return begin


Start = Callable[..., WorkerProcess]


def wait_saved(jobs: Jobs, job_id: str, position: int) -> JobRecord:
    def look() -> JobRecord | None:
        record = jobs.get(job_id)
        return record if record.checkpoints.get("") == position else None

    found = wait_until(look, f"the checkpoint stands at {position}")
    assert found is not None
    return found


@both
def test_how_far_a_job_is(start: Start, jobs: Jobs, diary: Diary, task: str) -> None:
    worker = start(**PLACES[task])
    job_id = jobs.put(task, folder=diary.folder, count=4)
    diary.let_pass(3)
    diary.wait("began 4")

    wait_until(lambda: _done_of(jobs, job_id) == 3, "its last word has come")
    progress = jobs.get(job_id).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.note) == (3, 4, "items")
    worker.signal(signal.SIGTERM)  # has it beat
    wait_until(lambda: _said_by_worker(jobs) == progress.done, "the worker's presence tells of it")
    diary.let_pass(4)
    worker.wait()


def _done_of(jobs: Jobs, job_id: str) -> float | None:
    progress = jobs.get(job_id).progress
    return None if progress is None else progress.done


def _said_by_worker(jobs: Jobs) -> object:
    broker = connect_blocking(jobs.client.settings.redis_url)
    (presence,) = drive(broker.workers(jobs.client.queue("jobs")))
    drive(broker.close())
    running = presence.document.get("jobs") or [{}]
    return running[0].get("progress", {}).get("done")


@both
def test_a_drain_ends_it_after_its_item_and_the_next_worker_does_exactly_the_rest(
    start: Start, jobs: Jobs, diary: Diary, task: str
) -> None:
    worker = start(**PLACES[task])
    job_id = jobs.put(task, folder=diary.folder, count=6)
    diary.let_pass(2)
    diary.wait("began 3")

    worker.signal(signal.SIGTERM)
    worker.wait_event("worker_draining")
    diary.let_pass(3)

    assert worker.wait() == 0, "long before its grace is over"
    record = jobs.get(job_id)
    assert (record.state, record.attempt, record.losses) == (JobState.READY, 0, 0)
    assert (record.releases, record.checkpoints) == (1, {"": 3})
    assert "goes on elsewhere" in record.history[0].cause
    diary.let_pass(6)
    start(**PLACES[task])
    assert jobs.result(job_id) == 6
    assert diary.done() == [1, 2, 3, 4, 5, 6]
    assert jobs.get(job_id).checkpoints == {}


def test_a_job_that_comes_to_its_checkpoint_during_the_drain_is_asked_as_well(
    start: Start, jobs: Jobs, diary: Diary
) -> None:
    worker = start()
    job_id = jobs.put("walk_twice", folder=diary.folder)
    diary.let_pass(2)
    diary.wait("began 3")

    worker.signal(signal.SIGTERM)
    worker.wait_event("worker_draining")
    diary.let_pass(3)

    assert worker.wait() == 0
    assert jobs.get(job_id).checkpoints == {"first": 2, "second": 1}
    diary.let_pass(4)
    start()
    jobs.result(job_id)
    assert diary.done() == [1, 2, 3, 4]


@both
def test_a_process_killed_between_two_items_costs_the_item_it_was_at(
    start: Start, jobs: Jobs, diary: Diary, task: str
) -> None:
    worker = start(**PLACES[task])
    job_id = jobs.put(task, folder=diary.folder, count=5)
    diary.let_pass(2)
    diary.wait("began 3")
    wait_saved(jobs, job_id, 2)

    kill(worker.children(1))
    diary.let_pass(5)

    assert jobs.result(job_id) == 5
    assert jobs.get(job_id).losses == 1
    assert diary.lines("began") == ["1", "2", "3", "3", "4", "5"]
    assert diary.done() == [1, 2, 3, 4, 5]


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, pids)), "they are gone")


def test_a_killed_worker_costs_the_item_it_was_at(start: Start, jobs: Jobs, diary: Diary) -> None:
    worker = start(lease_seconds=1.0)
    job_id = jobs.put("walk", folder=diary.folder, count=5)
    diary.let_pass(1)
    diary.wait("began 2")
    wait_saved(jobs, job_id, 1)

    kill([*worker.children(), worker.pid])
    worker.wait()
    diary.let_pass(5)
    start(lease_seconds=1.0)

    assert jobs.result(job_id) == 5
    assert jobs.get(job_id).losses == 1
    assert diary.lines("began") == ["1", "2", "2", "3", "4", "5"]


def test_what_was_not_told_before_a_kill_is_done_again_and_nothing_is_left_out(
    start: Start, jobs: Jobs, diary: Diary
) -> None:
    worker = start(slots=1)
    job_id = jobs.put("walk", folder=diary.folder, count=300)
    diary.let_pass(300)
    diary.wait("done 20")

    kill(worker.children())

    assert jobs.result(job_id) == 300
    assert sorted(set(diary.done())) == list(range(1, 301))


def test_a_worker_frozen_past_its_lease_does_not_move_the_place_of_the_next_one(
    start: Start, jobs: Jobs, diary: Diary
) -> None:
    frozen = start(lease_seconds=1.0)
    job_id = jobs.put("walk", folder=diary.folder, count=4)
    diary.let_pass(1)
    diary.wait("began 2")
    (child,) = frozen.children()
    wait_saved(jobs, job_id, 1)
    frozen.signal(signal.SIGSTOP)
    os.kill(child, signal.SIGSTOP)

    start(lease_seconds=1.0)
    wait_until(lambda: jobs.get(job_id).deliveries == 2, "another worker has it")
    diary.let_pass(3)
    diary.wait("began 4")
    wait_saved(jobs, job_id, 3)
    os.kill(child, signal.SIGCONT)
    diary.wait("done 2", 2)
    frozen.signal(signal.SIGCONT)
    frozen.wait_event("lease_lost")

    assert jobs.get(job_id).checkpoints == {"": 3}
    diary.let_pass(4)
    assert jobs.result(job_id) == 4


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


def test_a_job_does_not_wait_for_a_redis_that_is_away(
    server: ValkeyServer, start: Start, namespace: str, diary: Diary
) -> None:
    own = Jobs(Client(Settings(redis_url=server.url, namespace=namespace)))
    worker = start(redis_url=server.url)
    job_id = own.put("tell", folder=diary.folder, count=3000)
    diary.wait("done 3000")
    server.sync_and_kill()
    wait_until(lambda: worker.metric("tidework_redis_errors_total") > 0, "Redis is missed")

    diary.let_pass(3000)
    worker.wait_event("job_succeeded")
    server.restart()

    assert own.result(job_id) == 3000
    assert own.get(job_id).deliveries == 1


def test_what_was_said_meanwhile_is_told_when_redis_is_back(
    server: ValkeyServer, start: Start, namespace: str, diary: Diary
) -> None:
    own = Jobs(Client(Settings(redis_url=server.url, namespace=namespace)))
    worker = start(redis_url=server.url)
    job_id = own.put("walk", folder=diary.folder, count=5)
    diary.wait("began 1")
    server.sync_and_kill()
    diary.let_pass(3)
    diary.wait("began 4")
    wait_until(lambda: worker.metric("tidework_redis_errors_total") > 0, "Redis is missed")
    server.restart()

    diary.let_pass(4)
    diary.wait("began 5")
    wait_saved(own, job_id, 4)
    diary.let_pass(5)
    assert own.result(job_id) == 5
    assert diary.done() == [1, 2, 3, 4, 5]
