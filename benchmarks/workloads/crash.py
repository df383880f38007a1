"""One of two workers is killed with all its processes: when do its jobs run again?

Busy: a backlog of short naps keeps the other worker occupied. Idle: there is nothing but four
jobs that sleep for 20 s, longer than Tidework's lease, so that whoever runs a live job twice is
found out as well; the other worker has a free place for each of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from benchmarks import ledger
from benchmarks.ledger import Record
from benchmarks.program.work import END, START
from benchmarks.session import Session, Worker
from benchmarks.workloads import Figures, Plan

BUSY_CONCURRENCY = 2
SHORT_S = 0.25
LONG_JOBS = 4
LONG_S = 20.0
START_LIMIT_S = 60.0
STARTING = threading.Semaphore(6)
"""So many systems start their workers at once; then they wait side by side."""


def busy(session: Session, plan: Plan) -> Figures:
    """While a backlog waits."""
    start_two(session, BUSY_CONCURRENCY)
    place = len(session.ledger)
    # What one worker can do in the time, and some more for what two do before.
    count = round((plan.crash_s + 15) * BUSY_CONCURRENCY / SHORT_S)
    numbers, _ = session.enqueue("nap", count, seconds=SHORT_S)
    _wait_until(session, place, all)
    time.sleep(1)  # let both go on for a while
    victim = _wait_until(session, place, all)
    return _crash(session, victim, place, numbers, plan.crash_s, "crash.busy")


def idle(session: Session, plan: Plan) -> Figures:
    """While nothing else waits."""
    start_two(session, LONG_JOBS)
    place = len(session.ledger)
    numbers, _ = session.enqueue("nap", LONG_JOBS, seconds=LONG_S)
    victim = _wait_until(session, place, lambda held: sum(held) == LONG_JOBS)
    return _crash(session, victim, place, numbers, plan.crash_s, "crash.idle")


def start_two(session: Session, concurrency: int) -> None:
    """Start them, and have jobs run until both have had some at the same time."""
    with STARTING:
        _start_two(session, concurrency)


def _start_two(session: Session, concurrency: int) -> None:
    session.start_worker(concurrency)
    session.warm_up()
    session.start_worker(concurrency)
    deadline = time.monotonic() + START_LIMIT_S
    both = False
    while not both:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the second worker took no job:\n{session.workers[1].tail()}")
        place = len(session.ledger)
        session.enqueue("nap", 4 * concurrency, seconds=SHORT_S)
        while len(session.ledger) < place + 8 * concurrency and time.monotonic() < deadline:
            both = both or all(held(session, place))
            time.sleep(0.02)


def held(session: Session, place: int) -> list[int]:
    """How many jobs each worker holds."""
    records = session.ledger.since(place)
    return [
        len(ledger.held_by([stat.pid for stat in worker.tree()], records))
        for worker in session.workers
    ]


def _wait_until(session: Session, place: int, holds: Callable[[Sequence[int]], bool]) -> Worker:
    """Wait until what the workers hold is so. Returns the one that holds more."""
    deadline = time.monotonic() + START_LIMIT_S
    while not holds(found := held(session, place)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the workers hold {found} jobs")
        time.sleep(0.02)
    return session.workers[found.index(max(found))]


def _crash(
    session: Session, victim: Worker, place: int, numbers: range, limit_s: float, name: str
) -> Figures:
    """Kill a worker and watch.

    Returns how many jobs it held; seconds until the last of them started again, or the limit if
    one did not; jobs that still had not run to their end, of those whose turn had come; and jobs
    that ran to their end more than once.
    """
    pids = victim.freeze()
    killed_at = time.monotonic()
    lost = ledger.held_by(pids, session.ledger.since(place))
    session.workers.remove(victim)
    victim.kill()
    watch(session, place, lost, killed_at + limit_s)
    again = again_after(session.ledger.since(place), lost, killed_at, limit_s)
    if again < limit_s:
        watch(session, place, numbers, time.monotonic() + LONG_S)
    time.sleep(1)  # somebody may be about to run one for the second time
    records = session.ledger.since(place)
    living = [stat.pid for worker in session.workers for stat in worker.tree()]
    running = ledger.held_by(living, records)
    due = [number for number in whose_turn_came(records, numbers) if number not in running]
    tally = ledger.tally(records, due)
    return {
        f"{name}.held": len(lost),
        f"{name}.again_s": again,
        f"{name}.stuck": tally.lost,
        f"{name}.doubled": tally.doubled,
    }


def whose_turn_came(records: Iterable[Record], numbers: range) -> list[int]:
    """Jobs up to the last that was started: queues are first in, first out."""
    last = max((r.number for r in records if r.kind == START and r.number in numbers), default=-1)
    return [number for number in numbers if number <= last]


def again_after(
    records: Iterable[Record], held: Iterable[int], killed_at: float, limit_s: float
) -> float:
    """Seconds until the last of the held jobs started again, or the limit."""
    again = dict.fromkeys(held, limit_s)
    for record in records:
        if record.kind == START and record.number in again and record.at > killed_at:
            again[record.number] = min(again[record.number], record.at - killed_at)
    return max(again.values(), default=0.0)


def watch(session: Session, place: int, numbers: Iterable[int], deadline: float) -> None:
    """Until every one of these jobs has ended. Raises RuntimeError if the worker has."""
    wanted = set(numbers)
    while time.monotonic() < deadline:
        ended = {record.number for record in session.ledger.since(place) if record.kind == END}
        if ended >= wanted:
            return
        for worker in session.workers:
            worker.raise_if_ended()
        time.sleep(0.2)
