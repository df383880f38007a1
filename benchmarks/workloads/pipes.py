"""One of two workers is killed while jobs lie ahead in it: when do these run?

The jobs take 2 ms, so that a system that fetches jobs before it is free for them does. What a
killed worker had fetched is seen once the other one has run all the rest and falls silent: it is
what has not run by then. Jobs that had run and were not yet acknowledged run for the second time.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks import ledger
from benchmarks.program.work import END
from benchmarks.session import Session
from benchmarks.workloads import Figures, Plan
from benchmarks.workloads.crash import again_after, start_two, watch

CONCURRENCY = 2
SECONDS = 0.002
SAMPLE, WARM_UP = 240, 60
WORK_S = 4.0
LEFT = 0.1
"""Share of the jobs that has to be left when one is killed."""
MOST_JOBS = 8000
SILENCE_S = 1.0
BUSY_LIMIT_S = 60.0
_BUSY = threading.Lock()
"""One system at a time is busy; then they wait side by side."""


def pipes(session: Session, plan: Plan) -> Figures:
    """Kill one when a quarter of what is about 4 s of work has run, and watch.

    Returns jobs that the other worker did not run before it fell silent, how many of these had
    begun; seconds until the last of them started, or the limit if one did not; jobs that had
    still not run to their end; and jobs that ran to their end more than once.
    """
    with _BUSY, ThreadPoolExecutor(1) as aside:
        start_two(session, CONCURRENCY)
        count = min(MOST_JOBS, round(WORK_S * _rate(session)))
        place = len(session.ledger)
        # Some enqueue hardly faster than they run: it goes on while one is killed.
        enqueueing = aside.submit(session.enqueue, "nap", count, seconds=SECONDS)
        _wait_ended(session, place, count // 4)
        victim = session.workers[0]
        pids = victim.freeze()
        killed_at = time.monotonic()
        if len(_ended(session, place)) > (1 - LEFT) * count:
            raise RuntimeError(f"the {count} jobs were over before a worker could be killed")
        begun = ledger.held_by(pids, session.ledger.since(place))
        session.workers.remove(victim)
        victim.kill()
        numbers, _ = enqueueing.result()
        _wait_silent(session, killed_at + BUSY_LIMIT_S)
        fetched = set(numbers) - _ended(session, place)
    watch(session, place, numbers, killed_at + plan.crash_s)
    time.sleep(1)  # somebody may be about to run one for the second time
    records = session.ledger.since(place)
    tally = ledger.tally(records, numbers)
    return {
        "crash.pipes.held": len(fetched),
        "crash.pipes.begun": len(begun),
        "crash.pipes.again_s": again_after(records, fetched, killed_at, plan.crash_s),
        "crash.pipes.stuck": tally.lost,
        "crash.pipes.doubled": tally.doubled,
    }


def _rate(session: Session) -> float:
    """Jobs per second of both, once they know the task."""
    _run(session, WARM_UP)
    place = len(session.ledger)
    _run(session, SAMPLE)
    return ledger.end_rate(session.ledger.since(place))


def _run(session: Session, count: int) -> None:
    place = len(session.ledger)
    session.enqueue("nap", count, seconds=SECONDS)
    session.wait_for(place + 2 * count, BUSY_LIMIT_S)


def _ended(session: Session, place: int) -> set[int]:
    return {record.number for record in session.ledger.since(place) if record.kind == END}


def _wait_ended(session: Session, place: int, count: int) -> None:
    """Until so many jobs have run."""
    deadline = time.monotonic() + BUSY_LIMIT_S
    while (ended := len(_ended(session, place))) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{ended} of {count} jobs ran in time")
        time.sleep(0.01)


def _wait_silent(session: Session, deadline: float) -> None:
    """Until no job has begun or ended for a while."""
    size, since = len(session.ledger), time.monotonic()
    while time.monotonic() < min(since + SILENCE_S, deadline):
        time.sleep(0.05)
        if len(session.ledger) != size:
            size, since = len(session.ledger), time.monotonic()
