"""`kubectl tidework`: what there is, why it is so, and a run right now."""

from __future__ import annotations

import pytest

from tests.e2e.rig.commands import CommandError
from tests.e2e.support.documents import cron_task, task_queue
from tests.e2e.support.errands import Errands
from tests.e2e.support.workspace import Workspace

pytestmark = pytest.mark.expected_seconds(35)


def test_get_why_and_run(workspace: Workspace, errands: Errands) -> None:
    workspace.apply(
        task_queue("errands", errands.first, maxReplicas=1),
        cron_task("greeting", "errands", "echo", params={"text": "now"}, schedule="0 6 1 1 *"),
    )
    workspace.wait_for_condition_true("taskqueue", "errands")
    workspace.wait_for_condition_true("crontask", "greeting")

    asked = workspace.kubectl("tidework", "run", "greeting")

    assert "CronTask" in asked
    job = workspace.wait_for(
        lambda: workspace.get("crontask", "greeting")["status"].get("runNow", {}).get("job"),
        "the manual run is enqueued",
    )
    assert job in asked
    assert workspace.store.result("errands", job, within=60)["text"] == "now"

    shown = workspace.kubectl("tidework", "get")
    assert "errands" in shown
    assert "greeting" in shown
    why = workspace.kubectl("tidework", "why", "errands")
    wanted = workspace.get("taskqueue", "errands")["status"]
    assert "errands" in why
    assert wanted["why"].split(":")[0].split(";")[0] in why


def test_what_is_not_there_is_said_so(workspace: Workspace) -> None:
    with pytest.raises(CommandError, match="nobody"):
        workspace.kubectl("tidework", "run", "nobody")
    with pytest.raises(CommandError, match="nothing"):
        workspace.kubectl("tidework", "why", "nothing")
