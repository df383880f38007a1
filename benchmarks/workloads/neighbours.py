"""One of the async jobs that share a process ends it: what becomes of the others?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from benchmarks import ledger
from benchmarks.ledger import Record
from benchmarks.program.work import START
from benchmarks.session import Session
from benchmarks.workloads import Figures
from benchmarks.workloads.crash import START_LIMIT_S, again_after, watch

PLACES = 10
NEIGHBOURS = 8
SECONDS = 5.0
AFTERWARDS = 20
LIMIT_S = 30.0


def neighbours(session: Session) -> Figures:
    """A job reads address 0 beside eight that wait for 5 s; then come twenty short ones.

    Returns how many were hit; seconds until the last of them started again, or the limit if one
    did not; how often the culprit ran before it was a dead letter, and whether it is one; dead
    letters besides; innocents that did not run to their end, ran to it more than once, or were
    hit again.
    """
    session.start_worker(PLACES)
    session.warm_up()
    place = len(session.ledger)
    first, _ = session.enqueue("nap", NEIGHBOURS, seconds=SECONDS)
    session.wait_for(place + NEIGHBOURS)
    shared = {record.pid for record in session.ledger.since(place)}
    culprit, _ = session.enqueue("crash", 1)
    crashed_at = _wait_start(session, place, culprit.start)
    hit = ledger.held_by(shared, session.ledger.since(place)) - {culprit.start}
    later, _ = session.enqueue("nap", AFTERWARDS, seconds=0.1)
    innocents = range(first.start, later.stop)
    numbers = [number for number in innocents if number != culprit.start]
    watch(session, place, numbers, crashed_at + LIMIT_S)
    dead = _wait_dead(session, crashed_at + LIMIT_S)
    records = session.ledger.since(place)
    tally = ledger.tally(records, numbers)
    starts = Counter(record.number for record in records if record.kind == START)
    return {
        "crash.neighbours.hit": len(hit),
        "crash.neighbours.again_s": again_after(records, hit, crashed_at, LIMIT_S),
        "crash.neighbours.culprit_runs": starts[culprit.start],
        "crash.neighbours.culprit_dead": min(dead, 1),
        "crash.neighbours.dead": max(0, dead - 1),
        "crash.neighbours.stuck": tally.lost,
        "crash.neighbours.doubled": tally.doubled,
        "crash.neighbours.hit_again": hit_again(starts.items(), hit, numbers),
    }


def hit_again(starts: Iterable[tuple[int, int]], hit: Iterable[int], numbers: Iterable[int]) -> int:
    """How many started more often than the one crash explains; ``starts``: number and how often."""
    explained = dict.fromkeys(numbers, 1) | dict.fromkeys(hit, 2)
    return sum(1 for number, count in starts if count > explained.get(number, count))


def _wait_start(session: Session, place: int, number: int) -> float:
    """When the job started first."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        found: Record | None = next(
            (r for r in session.ledger.since(place) if r.kind == START and r.number == number), None
        )
        if found is not None:
            return found.at
        if time.monotonic() > deadline:
            raise RuntimeError("the job that crashes did not start")
        time.sleep(0.005)


def _wait_dead(session: Session, deadline: float) -> int:
    """Dead letters, once there is one or the time is up."""
    while True:
        dead = int(session.order("count_dead")["dead"])
        if dead or time.monotonic() > deadline:
            return dead
        time.sleep(0.1)
