"""A child in which one job after the other fails at once: when it is replaced, and how often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

from tidework.clock import ManualClock
from tidework.model.outcome import JobError, Outcome
from tidework.worker.frames import Ended
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.failing import AT_ONCE, FIRST_PAUSE, IN_A_ROW, Failing

FAILED = Outcome.retry(JobError("ValueError", "no"), timedelta(seconds=1))
GIVEN_BACK = Outcome.release()
DONE = Outcome.complete()


class Link:
    """What is looked at of a child."""

    def __init__(self, slot: int = 0) -> None:
        self.slot = slot
        self.done = self.failed = 0
        self.worn = ""


class EndedJobs:
    """A pool's Failing, and jobs that end."""

    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.failing = Failing(self.clock)

    def end(self, link: Link, *outcomes: Outcome, seconds: float = 0.001) -> bool:
        """Is it to be replaced after these?"""
        for outcome in outcomes:
            link.done += 1
            self.failing.note(cast("ChildLink", link), Ended(1, outcome, seconds))
        return bool(link.worn)


def test_too_many_failures_in_a_row_replace_it() -> None:
    ended, link = EndedJobs(), Link()
    assert not ended.end(link, *[FAILED] * (IN_A_ROW - 1), DONE, *[FAILED] * (IN_A_ROW - 1))

    assert ended.end(link, GIVEN_BACK, FAILED)
    assert link.worn == "5 jobs failed in it at once, one after the other"


def test_who_takes_time_to_fail_draws_no_more_than_others() -> None:
    assert not EndedJobs().end(Link(), *[FAILED] * 20, seconds=AT_ONCE * 2)


def test_where_the_new_child_does_no_better_the_next_comes_ever_more_rarely() -> None:
    ended = EndedJobs()
    assert ended.end(Link(), *[FAILED] * IN_A_ROW)
    pauses = [FIRST_PAUSE * 2**n for n in range(12)]
    for pause in [min(each, 3600.0) for each in pauses]:
        link = Link()
        ended.clock.advance(timedelta(seconds=pause - 1))
        assert not ended.end(link, *[FAILED] * IN_A_ROW)
        ended.clock.advance(timedelta(seconds=1))
        assert ended.end(link, FAILED)


def test_a_child_that_did_better_is_replaced_sooner_and_each_slot_counts_for_itself() -> None:
    ended = EndedJobs()
    assert ended.end(Link(), *[FAILED] * IN_A_ROW)
    assert ended.end(Link(slot=1), *[FAILED] * IN_A_ROW)
    for _ in range(3):
        ended.clock.advance(timedelta(seconds=FIRST_PAUSE))
        assert ended.end(Link(), DONE, *[FAILED] * IN_A_ROW)
