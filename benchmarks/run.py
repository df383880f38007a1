"""The order of a run: within a round all systems meet the same stage one after another.

The next round begins with the next system, so that a machine that gets slower hits all alike.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from benchmarks.session import Session, System
from benchmarks.stages import ONCE_IN_A_RUN, STAGES, Errand, Stage
from benchmarks.workloads import Figures, Plan

AT_ONCE = 40
_open: set[Session] = set()


@dataclass(slots=True)
class Result:
    """What one system gave in one stage of one round, and what went wrong.

    seconds: that the stage took
    """

    system: str
    round: int
    figures: Figures = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    stage: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Selection:
    """What is run: systems with their descriptions (see produce.py), workloads, rounds."""

    systems: Mapping[System, Mapping[str, Any]]
    workloads: Sequence[str]
    rounds: int
    plan: Plan


def rotated(systems: Sequence[System], by: int) -> list[System]:
    """The same, beginning with another one."""
    at = by % len(systems)
    return [*systems[at:], *systems[:at]]


def run(selection: Selection) -> Iterator[Result]:
    """All results, as they come."""
    for index in range(selection.rounds):
        wanted = [w for w in selection.workloads if index == 0 or w not in ONCE_IN_A_RUN]
        stages = [
            stage
            for stage in STAGES
            if set(stage.names) & set(wanted) and not (index and stage.only_once)
        ]
        for at_once, group in groupby(stages, key=lambda stage: stage.at_once):
            errands = [(stage, s) for stage in group for s in _systems(selection, stage, index)]
            with ThreadPoolExecutor(AT_ONCE if at_once else 1) as pool:
                futures = [
                    pool.submit(_run_stage, selection, stage, system, index, wanted)
                    for stage, system in errands
                ]
                try:
                    for future in as_completed(futures):
                        yield future.result()
                finally:  # if whoever asks has had enough, nothing of it goes on
                    pool.shutdown(wait=False, cancel_futures=True)
                    for session in list(_open):
                        session.abort()


def _systems(selection: Selection, stage: Stage, index: int) -> list[System]:
    full = selection.plan.full
    found = [system for system in selection.systems if stage.is_for(system, full=full)]
    return rotated(found, index) if found else []


def _run_stage(
    selection: Selection, stage: Stage, system: System, index: int, wanted: Sequence[str]
) -> Result:
    """A system that fails a stage is said to, and the others go on."""
    result = Result(system.name, index, stage=", ".join(stage.names))
    plan = selection.plan
    jobs = plan.jobs or int(selection.systems[system]["jobs"])
    began = time.monotonic()
    try:
        with Session(system, plan.server, **dict(stage.variables)) as session:
            _open.add(session)
            try:
                for figures in stage.run(Errand(session, plan, jobs, wanted)):
                    result.figures |= figures
            finally:
                _open.discard(session)
    except Exception as error:  # noqa: BLE001 - whatever a peer does is a finding
        result.faults.append(f"{result.stage}: {type(error).__name__}: {error}")
    result.seconds = round(time.monotonic() - began, 1)
    shown = {name: round(value, 3) for name, value in result.figures.items()}
    print(
        f"{system.name}: {result.seconds:.0f} s {shown} {result.faults or ''}",
        file=sys.stderr,
        flush=True,
    )
    return result
