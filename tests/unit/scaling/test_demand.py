"""How many replicas a load asks for, each rule alone."""

from __future__ import annotations

import pytest

from tests.support.scaling_cases import load, scaling
from tidework.scaling.demand import weigh


@pytest.mark.parametrize(
    ("backlog", "in_flight", "slots", "target", "replicas"),
    [
        (0, 0, 1, 4.0, 0),
        (1, 0, 1, 4.0, 1),
        (4, 0, 1, 4.0, 1),
        (5, 0, 1, 4.0, 2),
        (12, 3, 2, 4.0, 2),
        (500, 0, 2, 4.0, 63),
        (3, 0, 1, 0.1, 30),  # 3 / 0.1 is a little above 30 in binary
        (1, 0, 1000, 100_000.0, 1),
    ],
)
def test_the_backlog_rule_divides_jobs_by_slots_and_target(
    backlog: int, in_flight: int, slots: int, target: float, replicas: int
) -> None:
    found = weigh(load(backlog, in_flight), slots, scaling(targetBacklogPerSlot=target), 0)

    assert found.replicas == replicas


def test_running_jobs_need_their_slots_however_small_the_backlog() -> None:
    found = weigh(load(0, 10), 2, scaling(targetBacklogPerSlot=4.0), 0)

    assert found.replicas == 5
    assert found.words == "10 running over 2 slots -> 5"


def test_the_wait_rule_asks_for_enough_slots_to_work_off_the_backlog_in_time() -> None:
    rules = scaling(targetWaitSeconds=30.0)

    found = weigh(load(120, service_time={"render": 8.0}), 2, rules, 0)

    # 120 x 8 s of work over 2 slots in 30 s
    assert found.replicas == 16
    assert found.words == "120 waiting x 8 s each over 2 slots within 30 s -> 16"


def test_the_service_time_is_the_mean_over_tasks() -> None:
    rules = scaling(targetWaitSeconds=10.0)

    found = weigh(load(100, service_time={"fast": 1.0, "slow": 3.0}), 1, rules, 0)

    # The backlog rule asks for 25.
    assert found.words.endswith("25")
    found = weigh(load(100, service_time={"fast": 2.0, "slow": 6.0}), 1, rules, 0)
    assert found.replicas == 40


@pytest.mark.parametrize("times", [{}, {"odd": 0.0}, {"odd": float("inf")}])
def test_the_wait_rule_is_silent_without_a_service_time(times: dict[str, float]) -> None:
    rules = scaling(targetWaitSeconds=0.1)

    found = weigh(load(8, service_time=times), 1, rules, 0)

    assert found.replicas == 2
    assert "each" not in found.words


def test_the_wait_rule_is_silent_without_a_wait_target() -> None:
    found = weigh(load(8, service_time={"slow": 1000.0}), 1, scaling(), 0)

    assert found.replicas == 2


def test_fires_ahead_count_when_they_need_more_than_the_load() -> None:
    assert weigh(load(), 1, scaling(), 3).words == "known fires -> 3"
    assert weigh(load(40), 1, scaling(), 3).replicas == 10


def test_the_words_name_the_numbers() -> None:
    assert weigh(load(12, 3), 2, scaling(), 0).words == (
        "12 waiting + 3 running over 2 slots x 4 per slot -> 2"
    )
    assert weigh(load(1), 1, scaling(), 0).words == (
        "1 waiting + 0 running over 1 slot x 4 per slot -> 1"
    )
    assert weigh(load(), 1, scaling(), 0).words == "nothing waiting or running -> 0"
