"""Workers that die: their jobs run again, each loss is counted, and others do not suffer."""

from __future__ import annotations

import pytest

from tests.e2e.support.documents import task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.workspace import Workspace
from tidework import JobState

pytestmark = pytest.mark.expected_seconds(65)


def test_the_job_of_a_killed_pod_runs_again_in_another_and_one_loss_is_counted(
    workspace: Workspace, errands: Errands
) -> None:
    workspace.apply(task_queue("errands", errands.first, maxReplicas=1, leaseSeconds=4))
    workspace.wait_for_condition_true("taskqueue", "errands")
    # a minute for the first run: it is killed long before
    (job,) = workspace.store.enqueue("errands", "linger", [{"seconds": 60}])
    workspace.wait_for(lambda: workspace.store.journal("started"), "the job has started")
    (first,) = workspace.store.journal("started")

    workspace.kubectl("delete", "pod", first["pod"], "--grace-period=0", "--force")

    workspace.wait_for_end("errands", within=90)
    record = workspace.store.record("errands", job)
    assert record.state is JobState.SUCCEEDED
    assert (record.losses, record.deliveries) == (1, 2)
    assert record.result["pod"] != first["pod"]
    assert [entry["what"] for entry in workspace.store.journal()] == ["started", "started", "ended"]
    assert workspace.store.stats("errands").counters.get("lost") == 1


def test_a_job_that_kills_its_process_ends_as_a_dead_letter_and_its_pod_lives_on(
    workspace: Workspace, errands: Errands
) -> None:
    workspace.apply(task_queue("errands", errands.first, slots=2, minReplicas=1, maxReplicas=1))
    (poison,) = workspace.store.enqueue("errands", "crash", [{}])
    others = workspace.store.enqueue("errands", "note", [{"seconds": 0.2}] * 20)

    workspace.wait_for_end("errands", within=90)

    record = workspace.store.record("errands", poison)
    assert record.state is JobState.DEAD
    assert record.losses == 3
    assert record.error is not None
    assert "SIGSEGV" in record.error.message
    assert sorted(workspace.store.ids("errands", JobState.SUCCEEDED)) == sorted(others)
    (pod,) = workspace.ready_pods("errands")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    workspace.wait_for(
        lambda: workspace.get("taskqueue", "errands")["status"].get("dead") == 1,
        "the TaskQueue tells of the dead letter",
    )
