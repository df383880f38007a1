"""Jobs that harm what they run in, in pods with limits: the rest goes on, and each end is told.

All share one namespace and are put in at once; each test waits for its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.support.documents import Document, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import Installation
from tests.e2e.support.workspace import Workspace, open_workspace
from tidework import JobRecord, JobState

pytestmark = pytest.mark.expected_seconds(80)

LIMIT = {"limits": {"memory": "400Mi"}}
HARMLESS = 900
"""MiB at which a job stops to grow, whatever happens."""


def queues(image: str) -> list[Document]:
    """A pod for each trouble."""

    def queue(name: str, **spec: Any) -> Document:
        own = {"app": "errands.hostile", "minReplicas": 1, "maxReplicas": 1, "leaseSeconds": 4}
        return task_queue(name, image, **own | spec)

    return [
        queue("large", recycle={"memoryMiB": 64}, resources=LIMIT),
        queue("swelling", slots=2, resources=LIMIT),
        # 100 %: nobody but the kernel ends anything
        queue("bursting", slots=2, resources=LIMIT, memory={"mostPercent": 100}),
        queue("stuck", slots=3, hardTimeoutSeconds=45),
    ]


@dataclass
class Scene:
    """The pods as they began, and the ids of what was put in, by a word for it."""

    workspace: Workspace
    pods: dict[str, str]
    jobs: dict[str, str]

    def record(self, queue: str, word: str) -> JobRecord:
        return self.workspace.store.record(queue, self.jobs[word])

    def wait_for_state(self, queue: str, word: str, state: JobState, within: float) -> JobRecord:
        def holds() -> JobRecord:
            found = self.record(queue, word)
            assert found.state is state, found
            return found

        found: JobRecord = self.workspace.wait_for(
            holds, f"{word} of {queue} is {state}", within=within
        )
        return found

    def restarts(self, queue: str) -> int:
        """Of the queue's only pod, which is the one that it began with."""
        (pod,) = self.workspace.pods(queue)
        assert pod["metadata"]["name"] == self.pods[queue]
        count: int = pod["status"]["containerStatuses"][0]["restartCount"]
        return count


@pytest.fixture(scope="module")
def scene(chart: Installation, errands: Errands) -> Iterator[Scene]:
    chart.ensure()
    with (
        chart.cluster.namespace(f"hostile-{secrets.token_hex(2)}") as namespace,
        open_workspace(chart, namespace) as workspace,
    ):
        documents = queues(errands.first)
        workspace.apply(*documents)
        names = [document["metadata"]["name"] for document in documents]
        for name in names:
            workspace.wait_for_pods(name, 1)
        pods = {name: workspace.pods(name)[0]["metadata"]["name"] for name in names}
        yield Scene(workspace, pods, put_in(workspace))


def put_in(workspace: Workspace) -> dict[str, str]:
    """Neighbours first, so that they are there when the trouble begins."""

    def put(queue: str, task: str, **params: Any) -> str:
        (job,) = workspace.store.enqueue(queue, task, [params])
        return job

    jobs = {
        # longer than the other takes to end it, each time that they run together
        "beside the burst": put("bursting", "note", seconds=8),
        "beside the swelling": put("swelling", "note", seconds=30),
        "beside the stuck": put("stuck", "note", seconds=30),
    }
    workspace.wait_for(
        lambda: {entry["job"] for entry in workspace.store.journal("started")} == {*jobs.values()},
        "the neighbours have started",
    )
    return jobs | {
        "spin": put("stuck", "spin"),
        "leave": put("stuck", "leave", code=3),
        "crash": put("stuck", "crash"),
        "burst": put("bursting", "burst", mib=HARMLESS),
        "after the burst": put("bursting", "note"),
        "swell": put("swelling", "swell", most=HARMLESS),
        "large": put("large", "hold", mib=100),
    }


def test_a_container_that_the_kernel_ends_costs_no_innocent_its_life(scene: Scene) -> None:
    # first of all: that is told while its pod is down
    told = scene.workspace.wait_for_condition(
        "taskqueue", "bursting", "WorkersHealthy", "False", reason="CrashLoop", within=60
    )
    burst = scene.wait_for_state("bursting", "burst", JobState.DEAD, within=120)
    restarts = scene.restarts("bursting")
    neighbour = scene.wait_for_state("bursting", "beside the burst", JobState.SUCCEEDED, within=90)
    scene.wait_for_state("bursting", "after the burst", JobState.SUCCEEDED, within=60)

    assert "OOMKilled" in told["message"]
    assert burst.losses == 3
    assert burst.error is not None
    assert (burst.error.type, burst.error.cause) == ("LeaseExpired", "lost")
    assert f"worker {scene.pods['bursting']}" in burst.error.message
    # twice they were lost together; at their last chance they do not meet
    assert neighbour.losses == 2
    assert restarts >= 2
    (pod,) = scene.workspace.pods("bursting")
    ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert ended["reason"] == "OOMKilled"


def test_what_grows_past_its_child_s_limit_ends_and_the_child_is_replaced(scene: Scene) -> None:
    large = scene.wait_for_state("large", "large", JobState.SUCCEEDED, within=60)
    assert (large.result["mib"], large.result["pod"]) == (100, scene.pods["large"])
    assert (large.deliveries, large.losses) == (1, 0)
    store = scene.workspace.store

    def child_of_another() -> int:
        (job,) = store.enqueue("large", "hold", [{"mib": 1}])
        child: int = store.result("large", job, within=30)["child"]
        return child

    scene.workspace.wait_for(
        lambda: child_of_another() != large.result["child"], "its process is replaced"
    )
    assert store.stats("large").counters.get("lost", 0) == 0
    assert scene.restarts("large") == 0


def test_near_the_pod_s_limit_the_largest_child_is_ended_and_nobody_else(scene: Scene) -> None:
    swell = scene.wait_for_state("swelling", "swell", JobState.DEAD, within=90)
    neighbour = scene.wait_for_state(
        "swelling", "beside the swelling", JobState.SUCCEEDED, within=60
    )

    assert swell.losses == 3
    assert swell.error is not None
    assert (swell.error.type, swell.error.cause) == ("MemoryExceeded", "memory")
    assert "of 400 MiB were in use" in swell.error.message
    assert (neighbour.deliveries, neighbour.losses) == (1, 0)
    assert scene.restarts("swelling") == 0


def test_what_ends_or_holds_its_process_leaves_the_pod_alone(scene: Scene) -> None:
    leave = scene.wait_for_state("stuck", "leave", JobState.DEAD, within=60)
    crash = scene.wait_for_state("stuck", "crash", JobState.DEAD, within=60)
    spin = scene.wait_for_state("stuck", "spin", JobState.DEAD, within=120)
    neighbour = scene.wait_for_state("stuck", "beside the stuck", JobState.SUCCEEDED, within=60)

    causes = {
        word: record.error and (record.error.type, record.error.cause, record.losses)
        for word, record in {"leave": leave, "crash": crash, "spin": spin}.items()
    }
    assert causes == {
        "leave": ("WorkerLost", "exit code 3", 3),
        "crash": ("WorkerLost", "signal 11 (SIGSEGV)", 3),
        "spin": ("Timeout", "timeout", 0),
    }
    assert (neighbour.deliveries, neighbour.losses) == (1, 0)
    # the kubelet would have started it again after three probes of 10 s without an answer
    assert scene.restarts("stuck") == 0
