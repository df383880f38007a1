"""Which stages of a run meet which systems, and what comes of one that fails."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Self, cast

import pytest

from benchmarks import run as running
from benchmarks.run import Result, Selection, run
from benchmarks.session import System
from benchmarks.stages import OURS, OURS_ASYNC, STAGES, Errand, Stage
from benchmarks.workloads import Figures, Plan, neighbours

PEER = System("peer", "peer", Path())
OUR = System(OURS, OURS, Path())
OUR_ASYNC = System(OURS_ASYNC, OURS, Path())


class NoSession:
    """Of nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        self.aborted = threading.Event()

    def abort(self) -> None:
        self.aborted.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def selection(*systems: System, full: bool = False) -> Selection:
    described = {system: {"jobs": 5} for system in systems}
    return Selection(described, ["crash"], 1, Plan(full=full))


def found(
    monkeypatch: pytest.MonkeyPatch, stages: tuple[Stage, ...], chosen: Selection
) -> list[tuple[str, Figures, list[str]]]:
    monkeypatch.setattr(running, "STAGES", stages)
    monkeypatch.setattr(running, "Session", NoSession)
    return [(result.system, result.figures, result.faults) for result in run(chosen)]


def nothing(_: Errand) -> Iterator[Figures]:
    yield {}


def test_a_stage_of_ours_meets_peers_in_the_full_form_if_it_says_so() -> None:
    stage = Stage(("crash",), nothing, systems=(OURS,), all_in_full=True)

    assert [stage.is_for(system, full=False) for system in (OUR, OUR_ASYNC, PEER)] == [
        True,
        False,
        False,
    ]
    assert all(stage.is_for(system, full=True) for system in (OUR, OUR_ASYNC, PEER))
    assert not Stage(("crash",), nothing, systems=(OURS,)).is_for(PEER, full=True)
    assert Stage(("crash",), nothing).is_for(PEER, full=False)


def test_stages_that_wait_run_side_by_side_and_each_result_comes_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second_ended = threading.Event()

    def first(_: Errand) -> Iterator[Figures]:
        assert second_ended.wait(10)
        yield {"first": 1.0}

    def second(_: Errand) -> Iterator[Figures]:
        yield {"second": 2.0}

    stages = (
        Stage(("crash",), first, at_once=True),
        Stage(("crash",), second, at_once=True),
    )
    monkeypatch.setattr(running, "STAGES", stages)
    monkeypatch.setattr(running, "Session", NoSession)
    came = []

    for result in run(selection(PEER)):
        came.append(result.figures)
        second_ended.set()

    assert came == [{"second": 2.0}, {"first": 1.0}]


def test_whoever_ends_a_run_before_its_time_ends_what_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[bool] = []
    begun = threading.Event()

    def quick(_: Errand) -> Iterator[Figures]:
        assert begun.wait(10)
        yield {}

    def slow(errand: Errand) -> Iterator[Figures]:
        begun.set()
        session = cast("NoSession", errand.session)
        ended.append(session.aborted.wait(10))
        yield {}

    stages = tuple(Stage(("crash",), work, at_once=True) for work in (quick, slow))
    monkeypatch.setattr(running, "STAGES", stages)
    monkeypatch.setattr(running, "Session", NoSession)
    results = cast("Generator[Result, None, None]", run(selection(PEER)))

    next(results)
    results.close()

    assert ended == [True]


def test_a_system_that_fails_a_stage_is_said_to_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(errand: Errand) -> Iterator[Figures]:
        yield {"half": 0.5}
        raise RuntimeError("no job ran")

    results = found(monkeypatch, (Stage(("crash",), fail),), selection(OUR, PEER))

    assert results == [
        (name, {"half": 0.5}, ["crash: RuntimeError: no job ran"]) for name in (OURS, "peer")
    ]


def test_every_stage_has_somebody_to_meet() -> None:
    known = (OUR, OUR_ASYNC)
    assert all(any(stage.is_for(s, full=False) for s in known) for stage in STAGES)


def test_who_started_more_often_than_the_crash_explains_was_hit_again() -> None:
    starts = [(1, 2), (2, 1), (3, 2), (4, 3), (9, 3)]

    assert neighbours.hit_again(starts, hit=[1, 4], numbers=[1, 2, 3, 4]) == 2
