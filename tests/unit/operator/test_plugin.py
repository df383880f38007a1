"""kubectl tidework: what people read, and what their requests do, on a cluster in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fake_cluster import FakeCluster
from tidework.clock import ManualClock
from tidework.manifests import CronTask, parse_document
from tidework.scheduler.documents import spec_of
from tidework.scheduler.spec import manual_job
from tidework_operator.cluster import Kind, Object
from tidework_operator.naming import worker_selector
from tidework_operator.plugin.__main__ import run
from tidework_operator.plugin.session import Choice, Session
from tidework_operator.plugin.tables import since, span, table, until

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


class Terminal:
    """Runs commands; ``choice`` is what the last one asked for."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.clock = ManualClock(NOW)
        self.cluster = FakeCluster(self.clock)
        self.choice: Choice | None = None
        self.out = self.err = ""
        self._capsys = capsys

    def run(self, *arguments: str) -> int:
        """The exit status."""
        status = run([*arguments], obj=self._open)
        self.out, self.err = self._capsys.readouterr()
        return status

    @asynccontextmanager
    async def _open(self, choice: Choice) -> AsyncIterator[Session]:
        self.choice = choice
        namespace = "shop" if choice.namespace == "" else choice.namespace
        yield Session(self.cluster, namespace, self.clock)

    def put_queue(self, name: str = "emails", status: Object | None = None, **spec: Any) -> Object:
        found: Object = {
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"app": "shop.tasks", "minReplicas": 0, "maxReplicas": 5, **spec},
        }
        return self.cluster.put(Kind.TASK_QUEUE, found | ({"status": status} if status else {}))

    def put_crontask(
        self, name: str = "nightly", status: Object | None = None, **spec: Any
    ) -> Object:
        found: Object = {
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"queue": "emails", "task": "send", "every": "5m", **spec},
        }
        return self.cluster.put(Kind.CRON_TASK, found | ({"status": status} if status else {}))

    def put_pod(self, name: str, status: Object, **metadata: Any) -> None:
        labels = worker_selector("emails")
        head = {"namespace": "shop", "name": name, "labels": labels, **metadata}
        self.cluster.put(Kind.POD, {"metadata": head, "status": status})


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)


def condition(type_: str, status: str, reason: str, message: str = "") -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-05T09:00:00Z",
    }


QUEUE_STATUS = {
    "replicas": 3,
    "wantedReplicas": 5,
    "readyReplicas": 2,
    "workers": "2/5",
    "backlog": 12,
    "running": 3,
    "scheduled": 1,
    "dead": 2,
    "oldestAgeSeconds": 40,
    "why": "12 jobs wait: 5 replicas are wanted",
    "lastScaleTime": "2026-01-05T09:59:20Z",
    "observedGeneration": 1,
    "conditions": [
        condition("Ready", "True", "Served"),
        condition("ScalingLimited", "True", "TooManyReplicas", "raise maxReplicas"),
    ],
}


def test_get_shows_queues_and_crontasks(terminal: Terminal) -> None:
    terminal.put_queue(status=QUEUE_STATUS)
    terminal.put_queue("reports", status={"conditions": [condition("Ready", "False", "Away")]})
    terminal.put_queue("unseen")
    terminal.put_crontask(
        status={
            "lastScheduleTime": "2026-01-05T09:55:00Z",
            "lastResult": "succeeded",
            "nextScheduleTimes": ["2026-01-05T10:04:59Z"],
            "activeCount": 0,
            "conditions": [condition("Ready", "True", "Scheduled")],
        }
    )
    terminal.put_crontask("weekly", every=None, schedule="0 6 * * 1", timeZone="Europe/Berlin")

    assert terminal.run("get") == 0

    assert terminal.out == (
        "TASKQUEUE   WORKERS   JOBS WAITING   JOBS RUNNING   JOBS LATER   DEAD LETTERS   "
        "OLDEST   STATE\n"
        "emails      2/5       12             3              1            2              "
        "40s      Served\n"
        "reports                                                                         "
        "         !Away\n"
        "unseen                                                                          "
        "         "
        "(no operator has looked at it)\n"
        "\n"
        "CRONTASK   SCHEDULE    ZONE            LAST   RESULT      NEXT       ACTIVE   STATE\n"
        "nightly    every 5m    UTC             5m     succeeded   in 4m59s   0        Scheduled\n"
        "weekly     0 6 * * 1   Europe/Berlin                                          "
        "(no operator has looked at it)\n"
    )


def test_get_of_all_namespaces_names_them(terminal: Terminal) -> None:
    terminal.put_queue()
    other = {"metadata": {"namespace": "blog", "name": "comments"}, "spec": {"app": "blog"}}
    terminal.cluster.put(Kind.TASK_QUEUE, other)

    assert terminal.run("get", "-A") == 0

    lines = terminal.out.splitlines()
    assert lines[0].startswith("NAMESPACE   TASKQUEUE   WORKERS")
    assert [line.split()[:2] for line in lines[1:]] == [["blog", "comments"], ["shop", "emails"]]
    assert terminal.choice == Choice("", "", None)


def test_get_of_an_empty_namespace_says_so(terminal: Terminal) -> None:
    assert terminal.run("get", "-n", "blog", "--context", "there", "--kubeconfig", "file") == 0

    assert (terminal.out, terminal.err) == ("", "no TaskQueue and no CronTask in namespace blog\n")
    assert terminal.choice == Choice("file", "there", "blog")


def test_why_tells_reason_conditions_and_pods(terminal: Terminal) -> None:
    terminal.put_queue(status=QUEUE_STATUS)
    born = {"creationTimestamp": "2026-01-05T08:30:00Z"}
    is_ready = [{"type": "Ready", "status": "True"}]
    terminal.put_pod("tw-emails-a", {"conditions": is_ready}, **born)
    terminal.put_pod(
        "tw-emails-b",
        {
            "containerStatuses": [
                {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
            ]
        },
        **born,
    )
    scheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    terminal.put_pod("tw-emails-c", {"conditions": [scheduled]}, **born)
    ending = {"deletionTimestamp": "2026-01-05T09:59:00Z"}
    terminal.put_pod("tw-emails-d", {"conditions": is_ready}, **born, **ending)
    terminal.put_pod("tw-emails-e", {"phase": "Running"}, **born)

    assert terminal.run("why", "emails") == 0

    assert terminal.out == (
        "TaskQueue shop/emails: 3 replicas, 2 ready, 5 wanted (minReplicas 0, maxReplicas 5)\n"
        "why: 12 jobs wait: 5 replicas are wanted\n"
        "jobs: 12 waiting, 3 running, 1 later, 2 dead; the oldest has waited 40s\n"
        "last change: 40s ago\n"
        "\n"
        "CONDITION        STATUS   REASON            MESSAGE\n"
        "Ready            True     Served\n"
        "ScalingLimited   True     TooManyReplicas   raise maxReplicas\n"
        "\n"
        "POD           STATE         BECAUSE                           AGE\n"
        "tw-emails-a   ready                                           1h30m\n"
        "tw-emails-b   waiting       ImagePullBackOff: no such image   1h30m\n"
        "tw-emails-c   unscheduled   0/3 nodes are available           1h30m\n"
        "tw-emails-d   terminating                                     1h30m\n"
        "tw-emails-e   running                                         1h30m\n"
    )


def test_why_tells_a_pin_and_a_status_of_an_older_spec(terminal: Terminal) -> None:
    found = terminal.put_queue(status={**QUEUE_STATUS, "replicas": 1})
    found["spec"]["replicas"] = 1
    terminal.cluster.put(
        Kind.TASK_QUEUE, {**found, "metadata": {**found["metadata"], "generation": 2}}
    )

    assert terminal.run("why", "emails") == 0

    assert "1 replica, 2 ready, 5 wanted; pinned to 1 by spec.replicas (remove it" in terminal.out
    assert "this is about generation 1 of the spec; generation 2 was not looked at" in terminal.out


def test_why_of_a_queue_that_no_operator_has_looked_at(terminal: Terminal) -> None:
    terminal.put_queue()

    assert terminal.run("why", "emails") == 0

    assert "no operator has looked at it yet: is one running" in terminal.out


def test_what_is_not_there_is_told_with_what_is(terminal: Terminal) -> None:
    terminal.put_queue()

    assert terminal.run("why", "email") == 1
    assert terminal.err == (
        "kubectl tidework: no TaskQueue 'email' in namespace shop; did you mean emails?\n"
    )

    assert terminal.run("run", "nightly") == 1
    assert terminal.err == (
        "kubectl tidework: no CronTask 'nightly' in namespace shop; "
        "there is none; choose the namespace with -n\n"
    )


@pytest.mark.parametrize("by_document", [True, False])
def test_run_annotates_and_says_what_will_happen(terminal: Terminal, by_document: bool) -> None:
    before = terminal.put_crontask(
        suspend=by_document, status={"conditions": [condition("Ready", "True", "Suspended")]}
    )

    assert terminal.run("run", "nightly") == 0

    (found,) = terminal.cluster.objects(Kind.CRON_TASK)
    nonce = found["metadata"]["annotations"]["tidework.dev/run-now"]
    job = job_of(found, nonce)
    assert found["spec"] == before["spec"]
    assert terminal.out == (
        "CronTask shop/nightly runs now: task send is enqueued into queue emails as job "
        f"{job}, beside its schedule, although it is suspended\n"
    )

    terminal.run("run", "nightly")
    (again,) = terminal.cluster.objects(Kind.CRON_TASK)
    assert again["metadata"]["annotations"]["tidework.dev/run-now"] != nonce


def job_of(found: Object, nonce: str) -> str:
    """The id that the operator gives to the run."""
    document = parse_document(found)
    assert isinstance(document, CronTask)
    return manual_job(spec_of(document, NOW), nonce, NOW).id


def test_run_waits_until_the_operator_has_enqueued_it(terminal: Terminal) -> None:
    terminal.put_crontask(status={"conditions": [condition("Ready", "True", "Scheduled")]})

    def enqueue(kind: Kind, change: str, found: Object) -> None:
        nonce = (found["metadata"].get("annotations") or {}).get("tidework.dev/run-now")
        if nonce and "runNow" not in found["status"]:
            found["status"]["runNow"] = {"nonce": nonce, "job": "job-1"}
            terminal.cluster.put(kind, found)

    terminal.cluster.watchers.append(enqueue)

    assert terminal.run("run", "nightly", "--wait") == 0

    (found,) = terminal.cluster.objects(Kind.CRON_TASK)
    nonce = found["metadata"]["annotations"]["tidework.dev/run-now"]
    assert terminal.out == f"{job_of(found, nonce)}\n"
    assert "runs now" in terminal.err


def test_run_does_not_wait_for_ever(terminal: Terminal) -> None:
    terminal.put_crontask()

    assert terminal.run("run", "nightly", "--wait", "--timeout", "0.05") == 1

    assert terminal.out == ""
    assert "No operator has looked at this CronTask yet: it waits for one" in terminal.err
    assert "not seen enqueued within 0.05 s; `kubectl describe crontask -n shop" in terminal.err


def test_run_refuses_what_would_not_run(terminal: Terminal) -> None:
    message = "no TaskQueue 'emials' in namespace shop; create it"
    terminal.put_crontask(
        status={"conditions": [condition("Ready", "False", "QueueMissing", message)]}
    )

    assert terminal.run("run", "nightly") == 1

    assert "is not served (QueueMissing), so it would not run before" in terminal.err
    assert message in terminal.err
    assert terminal.cluster.called("patch") == []


def test_a_wait_ends_when_the_crontask_is_deleted(terminal: Terminal) -> None:
    terminal.put_crontask()

    def remove(kind: Kind, change: str, found: Object) -> None:
        if change == "MODIFIED":
            terminal.cluster.watchers.clear()
            terminal.cluster.remove(kind, "shop", "nightly")

    terminal.cluster.watchers.append(remove)

    assert terminal.run("run", "nightly", "--wait") == 1
    assert "CronTask nightly was deleted meanwhile" in terminal.err


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "planted by the test"),
        (403, "ask for these rights on taskqueues, crontasks (tidework.dev) and pods"),
        (404, "are the CRDs of Tidework installed in this cluster?"),
    ],
)
def test_what_the_cluster_refuses_is_one_line(terminal: Terminal, status: int, words: str) -> None:
    terminal.cluster.fail("list", status=status)

    assert terminal.run("get") == 1

    assert terminal.err.startswith("kubectl tidework: list: ")
    assert words in terminal.err
    assert len(terminal.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["why"], "Missing argument 'QUEUE'"),
        (["why", "emails", "-A"], "No such option"),
        (["run", "nightly", "--timeout", "0"], "Invalid value for '--timeout'"),
        (["gett"], "No such command 'gett'"),
    ],
)
def test_wrong_usage_is_told_by_the_name_that_kubectl_knows(
    terminal: Terminal, arguments: list[str], words: str
) -> None:
    assert terminal.run(*arguments) == 2

    assert "Usage: kubectl tidework" in terminal.err
    assert words in terminal.err


def test_a_kubeconfig_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "--kubeconfig", "/nowhere/config"]) == 2

    assert "choose one with --kubeconfig or --context" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (190, "3m10s"),
        (3600, "1h"),
        (19_200, "5h20m"),
        (86_400, "1d"),
        (370_900, "4d7h"),
    ],
)
def test_spans_have_two_units_at_most(seconds: int, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


def test_times_that_are_none() -> None:
    for text in (None, "", "soon", 5, "2026-01-05T10:00:00"):
        assert since(text, NOW) == ""
        assert until(text, NOW) == ""
    assert until("2026-01-05T10:00:00Z", NOW) == "now"


def test_a_table_without_rows_is_its_head() -> None:
    assert table(("A", "LONG"), []) == "A   LONG"
