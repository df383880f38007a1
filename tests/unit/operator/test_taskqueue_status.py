"""Conditions and fields of a TaskQueue's status, and when they are worth a write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidework.errors import ManifestError
from tidework.manifests import ManifestErrors
from tidework.model.backlog import QueueStats
from tidework.model.job import JobState
from tidework.scaling import Limit
from tidework_operator.cluster import Object
from tidework_operator.conditions import Condition
from tidework_operator.observations import Observation, ScalingReport, Trouble
from tidework_operator.taskqueues.judgement import Subject, judge, judge_invalid
from tidework_operator.taskqueues.status import differs, is_urgent, make_status, round_age

NOW = datetime(2026, 1, 5, 10, 0, 0, 500_000, tzinfo=UTC)
READY_POD = {
    "metadata": {"name": "a"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
STARTING_POD = {"metadata": {"name": "b"}, "status": {"phase": "Pending"}}
ENDED_POD = {"metadata": {"name": "c"}, "status": {"phase": "Failed"}}
TROUBLE = Trouble("Broken", "mend it")
SCALING = ScalingReport(wanted=2, why="8 waiting over 1 slot x 4 per slot -> 2")
STATS = QueueStats(dict.fromkeys(JobState, 0), 0, 0.0, {})
FINE = Observation({"spec": {"replicas": 1}}, (READY_POD,), stats=STATS, scaling=SCALING)


def conditions(
    seen: Observation | None = FINE,
    *,
    objects: Trouble | None = None,
    workers: Trouble | None = None,
) -> dict[str, Condition]:
    return {found.type: found for found in judge(Subject(objects, workers, seen))}


def taskqueue(**status: Any) -> Object:
    return {"metadata": {"name": "emails", "namespace": "shop", "generation": 4}, "status": status}


def test_a_queue_that_fares_well() -> None:
    found = {type_: (each.status, each.reason) for type_, each in conditions().items()}

    assert found == {
        "Ready": (True, "Served"),
        "RedisReachable": (True, "Reachable"),
        "ScalingActive": (True, "FollowsLoad"),
        "ScalingLimited": (False, "AsWanted"),
        "WorkersHealthy": (True, "Healthy"),
        "DeadLettersKept": (True, "BelowLimit"),
    }


def test_a_queue_at_zero_fares_well_too() -> None:
    found = conditions(replace(FINE, pods=()))

    assert (found["Ready"].status, found["Ready"].reason) == (True, "ScaledToZero")
    assert found["WorkersHealthy"].reason == "NoWorkers"


def test_before_the_first_look_everything_is_unknown() -> None:
    assert {each.status for each in conditions(None).values()} == {None}


def test_what_is_wrong_first_is_the_reason_of_ready() -> None:
    redis = replace(FINE, redis_trouble=Trouble("RedisUnavailable", "check it"))
    workers = Trouble("ImagePullFailed", "correct spec.image")

    found = conditions(redis, objects=TROUBLE, workers=workers)
    assert (found["Ready"].reason, found["Ready"].message) == ("Broken", "mend it")
    found = conditions(redis, workers=workers)
    assert found["Ready"].reason == found["RedisReachable"].reason == "RedisUnavailable"
    found = conditions(workers=workers)
    assert found["Ready"].reason == found["WorkersHealthy"].reason == "ImagePullFailed"
    assert all(found[type_].status is False for type_ in ("Ready", "WorkersHealthy"))


@pytest.mark.parametrize(
    ("reason", "ready"),
    [("NotLed", None), ("NoDeployment", None), ("ScaleFailed", False), ("Pinned", True)],
)
def test_scaling_that_does_not_follow_the_load(reason: str, ready: bool | None) -> None:
    scaling = replace(SCALING, inactive=Trouble(reason, "because"))
    found = conditions(replace(FINE, scaling=scaling))

    assert (found["ScalingActive"].status, found["ScalingActive"].reason) == (False, reason)
    assert found["Ready"].status is ready


def test_silent_workers_are_named() -> None:
    found = conditions(replace(FINE, silent=tuple("abcdefg")))["WorkersHealthy"]

    assert (found.status, found.reason) == (False, "WorkersSilent")
    assert "a, b, c, d, e and 2 more" in found.message


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        ("Redis at r:6379 refuses the credentials", ["a says: Redis at r:6379 refuses", "again"]),
        ("ok", ["a says that its Redis answers", "compare the URL in Secret tidework-redis-x"]),
        ("", ["nor do they answer", "NetworkPolicy", "tidework-redis-x"]),
    ],
)
def test_of_silent_workers_the_cause_is_told_as_far_as_it_is_known(
    heard: str, words: list[str]
) -> None:
    seen = replace(FINE, silent=("a",), heard=heard)
    subject = Subject(None, None, seen, "tidework-redis-x")
    (found,) = [each for each in judge(subject) if each.type == "WorkersHealthy"]

    assert found.reason == "WorkersSilent"
    for each in words:
        assert each in found.message
    assert ("NetworkPolicy" in found.message) is (heard == "")


@pytest.mark.parametrize("limit", list(Limit))
def test_every_limit_that_somebody_may_want_to_lift_is_told(limit: Limit) -> None:
    untold = (Limit.IDLE_COUNTDOWN, Limit.LOAD_UNKNOWN, Limit.MIN_REPLICAS)
    found = conditions(replace(FINE, scaling=replace(SCALING, limits=(limit,))))["ScalingLimited"]

    assert found.status is (limit not in untold)


def test_the_most_telling_limit_wins() -> None:
    limits = (Limit.SCALE_UP_POLICY, Limit.MAX_REPLICAS)
    found = conditions(replace(FINE, scaling=replace(SCALING, limits=limits)))["ScalingLimited"]

    assert found.reason == "TooManyReplicas"
    assert "raise it" in found.message


def test_a_spec_that_cannot_be_read_names_field_and_fault() -> None:
    errors = ManifestErrors(
        [
            ManifestError("unknown field; did you mean slots?", file="x", field="spec.slot"),
            ManifestError("has to be a mapping", file="x"),
        ]
    )
    ready, *others = judge_invalid(errors)

    assert (ready.status, ready.reason) == (False, "SpecInvalid")
    assert ready.message.endswith(
        "spec.slot: unknown field; did you mean slots?; has to be a mapping"
    )
    assert {(each.status, each.reason) for each in others} == {(None, "SpecInvalid")}


def test_the_fields_are_those_of_the_crd() -> None:
    states = {state: number for number, state in enumerate(JobState, 1)}
    stats = QueueStats(states, 5, 47.9, {})
    scaled = replace(SCALING, last_scale=NOW)
    seen = Observation(None, (READY_POD, STARTING_POD, ENDED_POD), stats=stats, scaling=scaled)

    status = make_status(taskqueue(), [], seen, NOW)

    assert status == {
        "observedGeneration": 4,
        "replicas": 2,
        "readyReplicas": 1,
        "selector": "app.kubernetes.io/name=tidework-worker,tidework.dev/taskqueue=emails",
        "wantedReplicas": 2,
        "why": "8 waiting over 1 slot x 4 per slot -> 2",
        "lastScaleTime": "2026-01-05T10:00:00Z",
        "workers": "1/2",
        "backlog": states[JobState.READY] + 5,
        "running": states[JobState.RUNNING],
        "scheduled": states[JobState.SCHEDULED],
        "dead": states[JobState.DEAD],
        "oldestAgeSeconds": 40,
        "conditions": [],
    }


def test_what_is_not_known_is_left_as_it_was() -> None:
    assert make_status(taskqueue(backlog=7), [], None, NOW) == {
        "observedGeneration": 4,
        "conditions": [],
    }
    status = make_status(taskqueue(), [], Observation(None, ()), NOW)
    assert status["replicas"] == 0
    assert not {"backlog", "workers", "why", "lastScaleTime"} & status.keys()


def test_conditions_keep_the_time_of_their_last_transition() -> None:
    first = make_status(taskqueue(), judge(Subject(None, None, FINE)), FINE, NOW)
    later = NOW + timedelta(hours=1)
    second = make_status(taskqueue(**first), judge(Subject(None, None, FINE)), FINE, later)

    assert second == first
    assert not differs(second, first)
    assert first["conditions"][0]["observedGeneration"] == 4


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.0, 0), (9.9, 9), (19.9, 10), (599, 590), (659, 600), (3600.5, 3600)],
)
def test_ages_are_rounded_the_more_the_older_they_are(seconds: float, told: int) -> None:
    assert round_age(seconds) == told


def test_numbers_that_move_are_no_hurry() -> None:
    before = make_status(taskqueue(), judge(Subject(None, None, FINE)), FINE, NOW)
    for changed in ({"backlog": 5}, {"why": "else"}, {"oldestAgeSeconds": 30}):
        assert differs(before | changed, before)
        assert not is_urgent(before | changed, before)


def test_replicas_and_conditions_are() -> None:
    before = make_status(taskqueue(), judge(Subject(None, None, FINE)), FINE, NOW)
    broken = make_status(taskqueue(), judge(Subject(TROUBLE, None, FINE)), FINE, NOW)

    assert is_urgent(before | {"replicas": 5}, before)
    assert is_urgent(before | {"wantedReplicas": 5}, before)
    assert is_urgent(broken, before)
    assert is_urgent(before, {})


def test_what_we_do_not_write_does_not_count() -> None:
    before = make_status(taskqueue(), [], FINE, NOW)

    assert not differs(before, {**before, "lastScaleTime": "2026-01-01T00:00:00Z"})


@pytest.mark.parametrize(
    ("dead", "status", "reason"),
    [
        (89, True, "BelowLimit"),
        (90, False, "DeadLettersMany"),
        (100, False, "DeadLettersDropped"),
    ],
)
def test_dead_letters_near_their_bound_raise_an_alarm(dead: int, status: bool, reason: str) -> None:
    stats = QueueStats({**dict.fromkeys(JobState, 0), JobState.DEAD: dead}, 0, 0.0, {})
    subject = Subject(None, None, replace(FINE, stats=stats), keeps=100)
    (found,) = [each for each in judge(subject) if each.type == "DeadLettersKept"]
    assert (found.status, found.reason) == (status, reason)
    if not status:
        assert "replay or purge" in found.message
