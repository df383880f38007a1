"""The read-out for people: why does it not fire?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from tests.unit.scheduler.rig import QUEUE, Rig, at, make_spec, unix
from tidework.model.fire import ConcurrencyPolicy, Verdict
from tidework.scheduler.due import FireRules
from tidework.scheduler.status import Circumstances, CronStatus, describe


async def status_of(rig: Rig) -> CronStatus:
    found = await rig.scheduler.status("digest")
    assert found is not None
    return found


async def test_a_crontask_that_fires() -> None:
    rig = Rig(make_spec("*/10 * * * *"))
    await rig.run_to("10:10:01")
    await rig.claim()

    found = await status_of(rig)

    job_id = f"digest-{unix('10:10:00')}"
    assert found == CronStatus(
        uid="digest",
        namespace="shop",
        name="digest",
        queue="emails",
        suspended=False,
        next_fires=tuple(at(f"{t}:00") for t in ("10:20", "10:30", "10:40", "10:50", "11:00")),
        last_fire=at("10:10:00"),
        last_job=job_id,
        verdicts={name: int(name is Verdict.ENQUEUED) for name in Verdict},
        active=(job_id,),
        reason="",
        clock_skew=timedelta(0),
    )


async def test_an_unknown_uid() -> None:
    assert await Rig(make_spec()).scheduler.status("nobody") is None


async def test_suspended() -> None:
    rig = Rig(make_spec(suspend=True))
    await rig.settle()

    found = await status_of(rig)

    assert found.suspended
    assert found.next_fires == ()
    assert found.reason == "suspended; it fires again once spec.suspend is false"


async def test_suspended_by_a_person() -> None:
    rig = Rig(make_spec())
    await rig.settle()
    held = await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="a repair")

    found = await status_of(rig)

    assert found.suspended
    assert held is not None
    assert (found.suspension, found.next_fires) == (held.suspension, ())
    assert "by ann" in found.reason
    assert found.reason.endswith(": a repair")


async def test_suspended_by_a_person_for_a_while() -> None:
    rig = Rig(make_spec())
    await rig.settle()
    until = at("10:05:00")
    await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="a repair", until=until)

    assert (await status_of(rig)).next_fires[:2] == (until, at("10:06:00"))
    rig.clock.advance(until - rig.clock.now())
    after = await status_of(rig)

    assert (after.suspended, after.suspension, after.reason) == (False, None, "")


async def test_suspended_by_its_document_and_by_a_person() -> None:
    rig = Rig(make_spec(suspend=True))
    await rig.settle()
    await rig.memory.suspend_cron(QUEUE, "digest", by="ann", reason="a repair")

    found = await status_of(rig)

    assert found.suspension is not None
    assert found.reason == "suspended; it fires again once spec.suspend is false"


async def test_standing_by() -> None:
    first = Rig(make_spec())
    await first.settle()
    second = first.another()
    await second.settle()

    found = await status_of(second)

    assert found.reason == "this scheduler stands by; the leader of queue shop/emails fires it"
    assert len(found.next_fires) == 5


async def test_before_the_first_tick() -> None:
    rig = Rig(make_spec())
    await rig.leadership.tick()

    assert (await status_of(rig)).reason == "about to be admitted"


async def test_skipped_because_a_run_goes_on() -> None:
    rig = Rig(make_spec(policy=ConcurrencyPolicy.FORBID))
    await rig.run_to("10:01:00")

    assert (await status_of(rig)).reason == (
        f"run digest-{unix('10:01:00')} has not ended; until then fires are skipped "
        "(concurrencyPolicy Forbid)"
    )


async def test_held_behind_the_run_that_it_replaces() -> None:
    rig = Rig(make_spec(policy=ConcurrencyPolicy.REPLACE))
    await rig.run_to("10:01:00")
    await rig.claim()
    await rig.run_to("10:02:00")

    assert (await status_of(rig)).reason == (
        f"run digest-{unix('10:02:00')} waits for the end of the one that it replaces"
    )


async def test_no_more_fires_than_max_runs_allows_are_announced() -> None:
    rig = Rig(make_spec(max_runs=3))
    await rig.run_to("10:01:00")

    assert (await status_of(rig)).next_fires == (at("10:02:00"), at("10:03:00"))


@pytest.mark.parametrize(
    "end, reason",
    [
        ("09:00:00", "endTime 2026-01-05T09:00:00+00:00 has passed"),
        (
            "12:00:00",
            "its schedule has no further fire time until endTime 2026-01-05T12:00:00+00:00",
        ),
    ],
)
def test_no_fire_is_left_before_the_end(end: str, reason: str) -> None:
    spec = make_spec("0 0 29 2 *", end=at(end))

    found = describe(spec, None, Circumstances(now=at("10:00:00"), led=True))

    assert found.reason == f"finished: {reason}"
    assert found.next_fires == ()


def test_a_schedule_that_never_fires_again() -> None:
    spec = make_spec()
    ended = replace(spec, rules=FireRules(Once(at("09:00:00"))))

    found = describe(ended, None, Circumstances(now=at("10:00:00"), led=True))

    assert found.reason == "finished: its schedule has no further fire time"


@dataclass(frozen=True)
class Once:
    """A schedule of one instant."""

    at: datetime
    fingerprint: str = "once"

    def next(self, after: datetime) -> datetime | None:
        return self.at if after < self.at else None

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        return self.at if after < self.at <= until else None

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        return [self.at] if after < self.at <= until else []
