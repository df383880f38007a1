"""Buckets, quantiles and sums."""

from __future__ import annotations

import math
import random

import pytest

from tests.support.lua_constants import lua_number, lua_steps
from tidework.model.statistics import (
    LAST_BUCKET,
    MOST_TASKS,
    Histogram,
    Step,
    Totals,
    bounds_of,
    bucket_of,
    totals_document,
)


def test_buckets_follow_each_other_without_a_gap() -> None:
    for bucket in range(LAST_BUCKET):
        low, high = bounds_of(bucket)
        assert bounds_of(bucket + 1)[0] == pytest.approx(high)
        assert bucket_of((low + high) / 2) == bucket


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0, 0), (0.000999, 0), (0.001, 1), (0.0015, 2), (0.002, 3), (1, 20), (134_218, 55), (1e9, 55)],
)
def test_a_time_has_its_bucket(seconds: float, bucket: int) -> None:
    assert bucket_of(seconds) == bucket


def histogram(times: list[float]) -> Histogram:
    found = Histogram()
    for seconds in times:
        found += Histogram({bucket_of(seconds): 1}, seconds)
    return found


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_quantile_is_off_by_the_width_of_a_bucket_at_most(share: float, seed: int) -> None:
    chance = random.Random(seed)
    times = sorted(chance.lognormvariate(0, 2) for _ in range(997))
    exact = times[math.ceil(share * len(times)) - 1]

    found = histogram(times).quantile(share)

    assert found is not None
    assert exact / 2**0.5 <= found <= exact * 2**0.5 + 0.001


def test_of_nothing_there_is_no_mean_and_no_quantile() -> None:
    assert Histogram().mean is None
    assert Histogram().quantile(0.5) is None
    assert Totals().success_rate is None


def test_beyond_the_last_bucket_is_its_beginning() -> None:
    assert Histogram({LAST_BUCKET: 3}, 1e6).quantile(0.99) == pytest.approx(2**27 / 1000)


def test_the_mean_is_exact() -> None:
    assert histogram([0.1, 0.2, 0.6]).mean == pytest.approx(0.3)


def test_the_success_rate_is_of_attempts_that_say_something() -> None:
    found = Totals(succeeded=6, failed=1, lost=1, dead=1, released=5, cancelled=5)
    assert found.success_rate == 0.75


def test_sums() -> None:
    one = Totals(enqueued=1, wait=Histogram({3: 1}, 0.002), run=Histogram({4: 1}, 0.003))
    two = Totals(enqueued=2, dead=1, wait=Histogram({3: 1, 5: 1}, 0.01))
    both = Totals.of([one, two])

    assert both == Totals(
        enqueued=3, dead=1, wait=Histogram({3: 2, 5: 1}, 0.012), run=Histogram({4: 1}, 0.003)
    )
    assert both.started == 3


def test_the_scripts_have_the_same_bounds() -> None:
    assert lua_number("exchange", "LAST_BUCKET") == LAST_BUCKET
    assert lua_number("fragments/points", "MOST_TASKS") == MOST_TASKS
    assert lua_steps() == [(step.letter, step.minutes, step.kept) for step in Step]


def test_the_document_has_no_numbers_where_there_is_nothing() -> None:
    found = totals_document(Totals(enqueued=2))

    nothing = {"mean": None, "p50": None, "p95": None, "p99": None}
    assert (found["enqueued"], found["started"], found["success_rate"]) == (2, 0, None)
    assert found["wait_seconds"] == found["run_seconds"] == nothing
