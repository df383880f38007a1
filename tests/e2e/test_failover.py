"""The leading operator dies between two fires: the other takes over, and each fire has one job."""

from __future__ import annotations

import json

import pytest

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.waiting import wait_until
from tests.e2e.support.documents import cron_task, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.installation import NAMESPACE, OPERATOR
from tests.e2e.support.workspace import Workspace
from tidework import JobState

pytestmark = pytest.mark.expected_seconds(75)

FREEZE = "kill -STOP $(cat /proc/1/task/1/children)"


def leader(cluster: Cluster) -> str:
    """Name of the pod that holds the Lease."""
    lease = cluster.kubectl_json("get", "lease", OPERATOR, "--namespace", NAMESPACE)
    name: str = lease["spec"]["holderIdentity"]
    return name


def wait_for_two_operators(cluster: Cluster) -> None:
    rollout = ("rollout", "status", f"deployment/{OPERATOR}", "--namespace", NAMESPACE)
    cluster.kubectl(*rollout, "--timeout", "90s", within=100)


def test_each_second_has_one_job_though_the_leader_is_killed_between_two(
    workspace: Workspace, errands: Errands, cluster: Cluster
) -> None:
    wait_for_two_operators(cluster)
    workspace.apply(
        task_queue("errands", errands.first, minReplicas=1, maxReplicas=1),
        cron_task("tick", "errands", "note", every="1s"),
    )
    uid = workspace.get("crontask", "tick")["metadata"]["uid"]

    def fired() -> list[int]:
        """Seconds of the jobs that ran, in the order in which they ended."""
        ended = [entry["job"] for entry in workspace.store.journal("ended")]
        return [int(job.removeprefix(f"{uid}-")) for job in ended]

    workspace.wait_for(lambda: len(fired()) >= 5, "five fires have run", within=90)
    before = leader(cluster)
    # frozen, it can't give the Lease back: SIGTERM waits, and SIGKILL follows a second later
    cluster.kubectl("exec", before, "--namespace", NAMESPACE, "--", "sh", "-c", FREEZE)
    cluster.kubectl(
        "delete", "pod", before, "--namespace", NAMESPACE, "--grace-period=0", "--force"
    )
    killed = max(fired())

    after = wait_until(
        lambda: (name := leader(cluster)) != before and name, within=60, describe="another leads"
    )
    workspace.wait_for(
        lambda: max(fired()) > killed + 30, "fires of the half minute after have run", within=90
    )
    workspace.kubectl("patch", "crontask", "tick", "--type=merge", "--patch", SUSPEND)
    workspace.wait_for(
        lambda: workspace.get("crontask", "tick")["status"].get("nextScheduleTimes") == [],
        "the CronTask is suspended",
    )
    workspace.wait_for_end("errands", within=60)

    seconds = sorted(fired())
    assert seconds == list(range(seconds[0], seconds[-1] + 1))
    assert len(workspace.store.ids("errands", JobState.SUCCEEDED)) == len(seconds)
    verdicts = workspace.wait_for(
        lambda: (
            (found := workspace.get("crontask", "tick")["status"]["verdicts"])["enqueued"]
            == len(seconds)
            and found
        ),
        "the status has counted every fire",
    )
    assert sum(verdicts.values()) == len(seconds)
    wait_for_two_operators(cluster)
    operators = cluster.kubectl_json("get", "pods", "--namespace", NAMESPACE)["items"]
    assert after in [pod["metadata"]["name"] for pod in operators]


SUSPEND = json.dumps({"spec": {"suspend": True}})
