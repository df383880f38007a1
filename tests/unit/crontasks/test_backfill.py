"""Which instants a backfill has, and how it goes through them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.scheduler.rig import QUEUE, Rig, at, make_spec, unix
from tidework.crontasks.backfill import MOST_FIRES, BackfillPlan, go_on, plan_backfill
from tidework.crontasks.errors import CronTaskNotFoundError
from tidework.crontasks.found import FoundCronTask
from tidework.errors import ConfigurationError
from tidework.model.fire import ConcurrencyPolicy, CronRecord, FireKind

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
RECORD = CronRecord("digest", "f", unix("12:00:00"), {}, (), "", None, "", "")


def plan(schedule: str, since: str, until: str, **given: Any) -> BackfillPlan:
    return plan_backfill(make_spec(schedule, **given), RECORD, at(since), at(until))


def test_both_ends_of_the_range_belong_to_it() -> None:
    found = plan("*/10 * * * *", "10:10:00", "10:30:00")
    assert found.fires == (at("10:10:00"), at("10:20:00"), at("10:30:00"))
    assert (found.one_at_a_time, found.until) == (False, None)


def test_instants_before_the_start_time_do_not_exist() -> None:
    found = plan("*/10 * * * *", "10:00:00", "10:30:00", start=at("10:20:00"))
    assert found.fires == (at("10:20:00"), at("10:30:00"))


def test_what_is_not_decided_yet_is_left_to_the_scheduler() -> None:
    found = plan("0 * * * *", "11:00:00", "14:00:00")
    assert (found.fires, found.until) == ((at("11:00:00"), at("12:00:00")), NOW)


@pytest.mark.parametrize("policy", [ConcurrencyPolicy.FORBID, ConcurrencyPolicy.REPLACE])
def test_a_policy_against_overlap_wants_one_at_a_time(policy: ConcurrencyPolicy) -> None:
    assert plan("0 * * * *", "10:00:00", "11:00:00", policy=policy).one_at_a_time


@pytest.mark.parametrize(
    ("since", "until", "told"),
    [
        ("10:00:00", "09:00:00", "before it begins"),
        ("10:00:01", "10:00:59", "has no instant between"),
        ("12:30:00", "13:30:00", "has no instant between"),
    ],
)
def test_a_range_without_instants_is_refused(since: str, until: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        plan("* * * * *", since, until)


def test_too_many_are_refused_with_the_part_that_can_be_had() -> None:
    since = NOW - timedelta(minutes=MOST_FIRES - 1)
    assert len(plan_backfill(make_spec(), RECORD, since, NOW).fires) == MOST_FIRES
    with pytest.raises(ConfigurationError, match="the first 1000 end at 2026-01-05T11:59:00"):
        plan_backfill(make_spec(), RECORD, since - timedelta(minutes=1), NOW)


def test_one_that_nobody_has_admitted_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has not been admitted"):
        plan_backfill(make_spec(), None, NOW, NOW)


async def backfilled(policy: str) -> tuple[Rig, FoundCronTask]:
    rig = Rig(make_spec("0 0 * * *", policy=ConcurrencyPolicy(policy)))
    await rig.settle()
    spec = {"queue": QUEUE.name, "task": "t", "every": "1m", "concurrencyPolicy": policy}
    document = {
        "apiVersion": "tidework.dev/v1alpha1",
        "kind": "CronTask",
        "metadata": {"name": "digest", "namespace": QUEUE.namespace, "uid": "digest"},
        "spec": spec,
    }
    return rig, FoundCronTask(QUEUE, "digest", document)


async def test_all_of_them_are_enqueued_where_runs_may_overlap() -> None:
    rig, found = await backfilled("Allow")
    fires = [at("09:00:00") - timedelta(minutes=i) for i in range(120)]

    step = await go_on(rig.memory, found, fires, rig.clock.now(), note="ann")

    assert (step.enqueued, step.known, step.left, step.waits_for) == (120, 0, (), "")
    again = await go_on(rig.memory, found, fires, rig.clock.now(), note="ann")
    assert (again.enqueued, again.known) == (0, 120)


async def test_where_runs_may_not_overlap_each_step_enqueues_one() -> None:
    rig, found = await backfilled("Forbid")
    left = tuple(at(f"09:0{i}:00") for i in range(3))
    first = left[0]
    ran = []
    while left:
        step = await go_on(rig.memory, found, left, rig.clock.now(), note="ann")
        assert (step.enqueued, step.known) == (1, 0)
        left = step.left
        ran += await rig.jobs()
        assert not left or step.waits_for == ran[-1]
        await rig.complete(await rig.claim())
    assert ran[0] == f"digest-{unix('09:00:00')}"
    history = await rig.memory.fires(QUEUE, "digest")
    assert [entry.kind for entry in history] == [FireKind.BACKFILL] * 3
    again = await go_on(rig.memory, found, [first], rig.clock.now(), note="ann")
    assert (again.enqueued, again.known) == (0, 1)


async def test_one_that_goes_meanwhile_ends_it() -> None:
    rig, found = await backfilled("Allow")
    gone = replace(found, uid="gone")
    with pytest.raises(CronTaskNotFoundError):
        await go_on(rig.memory, gone, [at("09:00:00")], rig.clock.now(), note="")
