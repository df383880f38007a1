"""Stages: what is done in one session, that is with one fresh server and its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.session import Session, System
from benchmarks.workloads import (
    Figures,
    Plan,
    crash,
    drain,
    enqueue,
    growth,
    idle,
    neighbours,
    pipes,
    work,
)

OURS = "tidework"
OURS_ASYNC = "tidework-async"


@dataclass(frozen=True, slots=True)
class Errand:
    """A session with what its stage may have to know."""

    session: Session
    plan: Plan
    jobs: int
    wanted: Sequence[str]


@dataclass(frozen=True, slots=True)
class Stage:
    """Workloads that share a session.

    names:     it is run if one of them is wanted
    only_once: not in later rounds, as it varies little or takes long
    systems:   it is about these alone; none named: all
    all_in_full: in the full form about all
    at_once:   systems run side by side, and with the stages beside it that are so, too: it is
               about waiting, not about CPU
    variables: of the session's processes
    """

    names: tuple[str, ...]
    run: Callable[[Errand], Iterator[Figures]]
    only_once: bool = False
    systems: tuple[str, ...] = ()
    all_in_full: bool = False
    at_once: bool = False
    variables: tuple[tuple[str, str], ...] = ()

    def is_for(self, system: System, *, full: bool) -> bool:
        """Whether a system takes part."""
        return not self.systems or system.name in self.systems or (full and self.all_in_full)


def _requests(errand: Errand) -> Iterator[Figures]:
    yield drain.requests(errand.session, min(2000, errand.jobs))


def _two(errand: Errand) -> Iterator[Figures]:
    yield drain.noop(errand.session, 2, errand.jobs)


def _ten(errand: Errand) -> Iterator[Figures]:
    if "drain-10" in errand.wanted:
        yield drain.noop(errand.session, 10, errand.jobs)
    else:
        errand.session.start_worker(10, 2)
        errand.session.warm_up()
    if "io" in errand.wanted:
        yield work.naps(errand.session)


def _cpu(errand: Errand) -> Iterator[Figures]:
    yield work.burns(errand.session, errand.plan)


def _quiet(errand: Errand) -> Iterator[Figures]:
    errand.session.start_worker(10)
    errand.session.warm_up()
    if "idle" in errand.wanted:
        yield idle.footprint(errand.session, errand.plan, "idle")
    if "wake" in errand.wanted:
        yield idle.wakes(errand.session, errand.plan)


def _quiet_one(errand: Errand) -> Iterator[Figures]:
    errand.session.start_worker(1)
    errand.session.warm_up()
    yield idle.footprint(errand.session, errand.plan, "idle-1")


def _enqueue(errand: Errand) -> Iterator[Figures]:
    yield enqueue.enqueue(errand.session)


def _crash_busy(errand: Errand) -> Iterator[Figures]:
    yield crash.busy(errand.session, errand.plan)


def _crash_idle(errand: Errand) -> Iterator[Figures]:
    yield crash.idle(errand.session, errand.plan)


def _crash_pipes(errand: Errand) -> Iterator[Figures]:
    yield pipes.pipes(errand.session, errand.plan)


def _crash_neighbours(errand: Errand) -> Iterator[Figures]:
    yield neighbours.neighbours(errand.session)


def _few(errand: Errand) -> Iterator[Figures]:
    yield growth.few(errand.session)


def _million(errand: Errand) -> Iterator[Figures]:
    yield growth.million(errand.session)


def _queues(errand: Errand) -> Iterator[Figures]:
    yield growth.queues(errand.session)


ONE_QUEUE = (("BENCHMARK_QUEUES", "1"),)
MANY_QUEUES = (("BENCHMARK_QUEUES", "100"),)

STAGES = (
    Stage(("requests",), _requests, only_once=True),
    Stage(("drain-2",), _two),
    Stage(("drain-10", "io"), _ten),
    Stage(("cpu",), _cpu),
    Stage(("idle", "wake"), _quiet),
    Stage(("idle",), _quiet_one, only_once=True, systems=(OURS,)),
    Stage(("enqueue",), _enqueue, only_once=True),
    Stage(("crash",), _crash_busy, only_once=True, at_once=True),
    Stage(("crash",), _crash_idle, only_once=True, at_once=True),
    Stage(
        ("crash",),
        _crash_pipes,
        only_once=True,
        at_once=True,
        systems=(OURS, OURS_ASYNC),
        all_in_full=True,
    ),
    Stage(("crash",), _crash_neighbours, only_once=True, at_once=True, systems=(OURS_ASYNC,)),
    Stage(("growth",), _few, only_once=True, systems=(OURS,)),
    Stage(("growth",), _million, only_once=True, systems=(OURS,)),
    Stage(("growth",), _queues, only_once=True, systems=(OURS,), variables=ONE_QUEUE),
    Stage(("growth",), _queues, only_once=True, systems=(OURS,), variables=MANY_QUEUES),
)
WORKLOADS = tuple(dict.fromkeys(name for stage in STAGES for name in stage.names))
FULL_ONLY = ("growth",)
ONCE_IN_A_RUN = ("idle",)
"""Wakes are repeated without it."""
