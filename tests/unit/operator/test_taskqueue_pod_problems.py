"""Why workers do not start: reason and remedy, from what Kubernetes shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidework_operator.cluster import Object
from tidework_operator.observations import Trouble
from tidework_operator.taskqueues.pod_problems import find_problem

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def pod(name: str = "tw-emails-1", *containers: Object, **status: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "status": {"phase": "Pending", "containerStatuses": list(containers)} | status,
    }


def waiting(reason: str, message: str = "", **more: Any) -> Object:
    state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
    return {"name": "worker", "image": "shop:1", "ready": False, "state": state} | more


def crashed(code: int, message: str = "", reason: str = "Error", **more: Any) -> Object:
    ended = {"exitCode": code, "reason": reason, "message": message}
    found = waiting("CrashLoopBackOff", "back-off 40s restarting failed container")
    return found | {"restartCount": 3, "lastState": {"terminated": ended}} | more


def deployment(type_: str, status: str, message: str) -> Object:
    condition = {"type": type_, "status": status, "message": message}
    return {"status": {"conditions": [condition]}}


def scheduled(status: str, reason: str = "", message: str = "", since: datetime = NOW) -> Object:
    return {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ]
    }


def problem(*pods: Object, of: Object | None = None) -> Trouble:
    found = find_problem(of, pods, "default", NOW)
    assert found is not None
    return found


def test_pods_that_run_are_no_problem() -> None:
    running: Object = {"name": "worker", "ready": True, "state": {"running": {}}, "restartCount": 0}
    once = running | {"restartCount": 1, "lastState": {"terminated": {"exitCode": 137}}}
    often = running | {"restartCount": 9, "lastState": {"terminated": {"exitCode": 137}}}

    for each in (running, once, often):
        assert find_problem(None, [pod("a", each, phase="Running")], "default", NOW) is None
    assert find_problem(None, [], "default", NOW) is None


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ErrImagePull", 'pull of "shop:1": not found'),
        (
            "ImagePullBackOff",
            'Back-off pulling image "shop:1": ErrImagePull: pull of "shop:1": not found',
        ),
    ],
)
def test_an_image_that_cannot_be_pulled_reads_the_same_between_attempts(
    reason: str, message: str
) -> None:
    found = problem(pod("a", waiting(reason, message)), pod("b"))

    assert found == Trouble(
        "ImagePullFailed",
        '1 of 2 pods: image shop:1 cannot be pulled: pull of "shop:1": not found; correct '
        "spec.image, make the image available to the nodes, or name a pull secret in "
        "spec.template.spec.imagePullSecrets",
    )


def test_a_name_that_is_no_image() -> None:
    assert problem(pod("a", waiting("InvalidImageName"))).reason == "ImagePullFailed"


@pytest.mark.parametrize(
    "message",
    [
        'secret "tidework-redis-default" not found',
        "couldn't find key url in Secret shop/tidework-redis-default",
    ],
)
def test_a_missing_redis_secret_is_told_with_the_command_that_makes_it(message: str) -> None:
    found = problem(pod("a", waiting("CreateContainerConfigError", message)))

    assert found.reason == "RedisSecretMissing"
    assert message in found.message
    assert (
        "kubectl -n shop create secret generic tidework-redis-default --from-literal=url="
        in found.message
    )


def test_another_missing_reference() -> None:
    found = problem(pod("a", waiting("CreateContainerConfigError", 'secret "smtp" not found')))

    assert found.reason == "ContainerConfigError"
    assert 'secret "smtp" not found; create what is missing' in found.message


def test_an_image_that_would_run_as_root() -> None:
    said = (
        "container has runAsNonRoot and image will run as root "
        '(pod: "tw-emails-1_shop(55942b17-5c35-446b-88ec-626303a59fc8)", container: worker)'
    )
    found = problem(pod("a", waiting("CreateContainerConfigError", said)))

    assert found == Trouble(
        "ImageRunsAsRoot",
        "1 of 1 pods: container has runAsNonRoot and image will run as root; give the image a "
        "numeric USER other than 0, or set runAsUser in spec.template.spec.securityContext",
    )


def test_a_worker_that_cannot_start_as_configured_says_why() -> None:
    line = json.dumps({"ts": "2026-01-05T10:00:00", "message": "no module named shop", "pid": 7})
    found = problem(pod("a", crashed(2, f"starting\n{line}\n")))

    assert found.reason == "CrashLoop"
    assert found.message == (
        "1 of 1 pods: the worker cannot start as configured (exit code 2): no module named shop; "
        "see kubectl -n shop logs --previous a -c worker"
    )


def test_a_container_out_of_memory() -> None:
    found = problem(pod("a", crashed(137, reason="OOMKilled")))

    assert found.reason == "CrashLoop"
    assert "OOMKilled" in found.message
    assert "raise spec.resources.limits.memory" in found.message


def test_a_crash_loop_is_one_between_the_back_offs_too() -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": "ValueError: x"}
    states: list[Object] = [
        {"state": {"running": {}}, "lastState": {"terminated": ended}},
        {"state": {"terminated": ended}},
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}},
    ]
    told = {
        problem(pod("a", {"name": "worker", "ready": False, "restartCount": 2} | state)).message
        for state in states
    }

    assert len(told) == 1
    assert "exit code 1 and is started again and again: ValueError: x" in told.pop()


def test_an_init_container_counts_too() -> None:
    init = crashed(1) | {"name": "migrate"}
    found = problem(pod("a", waiting("PodInitializing"), initContainerStatuses=[init]))

    assert found.reason == "CrashLoop"
    assert "-c migrate" in found.message


def test_a_program_that_is_not_in_the_image() -> None:
    found = problem(pod("a", waiting("RunContainerError", 'exec: "tini": not found')))

    assert found.reason == "ContainerStartFailed"
    assert 'exec: "tini": not found' in found.message


def test_no_node_takes_them() -> None:
    said = "0/3 nodes are available: 3 Insufficient cpu."
    found = problem(*(pod(name, **scheduled("False", "Unschedulable", said)) for name in "ab"))

    assert found.reason == "Unschedulable"
    assert found.message.startswith(f"2 of 2 pods: no node takes them: {said}; add or free nodes")


def test_a_pod_that_waits_for_the_scheduler_is_no_problem_yet() -> None:
    gated = pod("a", **scheduled("False", "SchedulingGated"))

    assert find_problem(None, [gated], "default", NOW) is None


def test_containers_that_are_not_created_for_minutes() -> None:
    since = NOW - timedelta(minutes=2)
    container = waiting("ContainerCreating")
    slow = pod("a", container, **scheduled("True", since=since))
    fresh = pod("a", container, **scheduled("True", since=since + timedelta(seconds=1)))

    assert problem(slow).reason == "ContainerNotCreated"
    assert "kubectl -n shop describe pod a" in problem(slow).message
    assert find_problem(None, [fresh], "default", NOW) is None


@pytest.mark.parametrize(
    ("said", "reason", "remedy"),
    [
        (
            'pods "tw-emails-1" is forbidden: exceeded quota: small, requested: pods=1, used: 2',
            "QuotaExceeded",
            "raise the ResourceQuota",
        ),
        (
            'pods "tw-emails-1" is forbidden: violates PodSecurity "restricted:latest": x',
            "PodSecurityViolated",
            "spec.template",
        ),
        ("admission webhook denied it", "PodsRefused", "correct the spec or the policy"),
    ],
)
def test_pods_that_the_api_server_refuses(said: str, reason: str, remedy: str) -> None:
    found = problem(of=deployment("ReplicaFailure", "True", said))

    assert found.reason == reason
    assert remedy in found.message
    assert "tw-emails-1" not in found.message


def test_a_refusal_that_is_over_is_none() -> None:
    over = deployment("ReplicaFailure", "False", "exceeded quota")

    assert find_problem(over, [], "default", NOW) is None


def test_a_rollout_that_stands_still_without_a_known_cause() -> None:
    stalled = deployment("Progressing", "False", "ReplicaSet has timed out progressing.")

    assert problem(of=stalled).reason == "RolloutStalled"
    known = problem(pod("a", waiting("ErrImagePull", "no")), of=stalled)
    assert known.reason == "ImagePullFailed"


def test_pods_on_their_way_out_are_not_asked() -> None:
    leaving = pod("a", waiting("ErrImagePull", "no"))
    leaving["metadata"]["deletionTimestamp"] = "2026-01-05T10:00:00Z"
    failed = pod("b", waiting("ErrImagePull", "no"), phase="Failed")

    assert find_problem(None, [leaving, failed], "default", NOW) is None


def test_what_is_told_is_one_line_of_a_readable_length() -> None:
    found = problem(pod("a", waiting("ErrImagePull", "so\nmany  words " * 200)))

    assert "\n" not in found.message
    assert len(found.message) < 800
