"""Jobs of unknown tasks: no worker is started for them, but one for a look of each new version."""

from __future__ import annotations

from tests.support.scaling_cases import Replay, load, scaling
from tidework.scaling import Limit

RULES = scaling(idleSeconds=10, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
SEEN = load(unknown=3, announced="v1")


def test_they_start_no_worker_and_the_reason_says_so() -> None:
    replay = Replay(RULES)
    decisions = [replay.at(second, SEEN, version="v1") for second in range(0, 600, 10)]
    assert {decision.replicas for decision in decisions} == {0}
    decision = decisions[-1]
    assert "3 jobs wait for a worker that knows their task, such as 'sned'" in decision.reason
    assert "they start no worker" in decision.reason


def test_they_keep_no_worker() -> None:
    replay = Replay(RULES, replicas=1)
    assert replay.at(0, SEEN, version="v1").replicas == 1
    assert replay.at(9, SEEN, version="v1").limits == (Limit.IDLE_COUNTDOWN,)
    assert replay.at(11, SEEN, version="v1").replicas == 0


def test_a_new_version_has_one_look_with_one_worker() -> None:
    replay = Replay(RULES)
    assert replay.at(0, SEEN, version="v1").replicas == 0
    decision = replay.at(1, load(unknown=300, announced="v1"), version="v2")
    assert decision.replicas == 1
    assert "a new version has a look" in decision.reason
    for second in range(2, 40):
        assert replay.at(second, SEEN, version="v2").replicas == 1, "until it has announced itself"
    looked = load(unknown=3, announced="v2")
    assert [replay.at(second, looked, version="v2").replicas for second in (40, 45, 51)] == [
        1,
        1,
        0,
    ]
    assert replay.at(52, looked, version="v2").replicas == 0


def test_what_else_waits_is_served_as_ever() -> None:
    replay = Replay(scaling(targetBacklogPerSlot=1))
    found = load(5, unknown=2, announced="v1")
    decision = replay.at(0, found, version="v1")
    assert decision.wanted == 5
    assert "start no worker" in decision.reason
    assert Replay(scaling(targetBacklogPerSlot=1)).at(0, found, version="v2").wanted == 5


def test_a_paused_queue_and_a_version_that_nobody_knows_have_no_look() -> None:
    assert Replay(RULES).at(0, load(unknown=3, paused=True), version="v2").replicas == 0
    assert Replay(RULES).at(0, load(unknown=3)).replicas == 0


def test_at_most_max_replicas_look() -> None:
    assert Replay(RULES, high=0).at(0, SEEN, version="v2").replicas == 0
