"""An idle worker: what it costs, and how soon a job starts that comes out of the blue."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks import processes
from benchmarks.ledger import Record
from benchmarks.server import RequestCount
from benchmarks.session import Session
from benchmarks.workloads import Figures, Plan

SETTLE_S = 2.0
WAKES = 300
DENSE_LIMIT_S = 6.0
SILENCE_S = 5.0


def footprint(session: Session, plan: Plan, name: str) -> Figures:
    """Memory (MiB of PSS), CPU (percent of a core) and requests per second."""
    time.sleep(SETTLE_S)
    before = processes.exact_cpu_of(session.worker.tree())
    began = time.monotonic()
    with RequestCount(session.server) as counted:
        time.sleep(plan.idle_s)
    after = session.worker.tree()
    spent = processes.exact_cpu_of(after) - before
    seconds = time.monotonic() - began
    return {
        f"{name}.pss_mib": processes.pss_of(after) / 2**20,
        f"{name}.processes": len(after),
        f"{name}.cpu_percent": 100 * spent / seconds,
        f"{name}.requests": counted.total / seconds,
    }


def wakes(session: Session, plan: Plan) -> Figures:
    """Milliseconds from just before the call of enqueue to the first line of the job.

    Dense: a few milliseconds after the one before. The order is: silence first, as the worker
    comes from a silence.
    """
    silent = [wait for _ in range(plan.silences) for wait in _wake(session, 1, SILENCE_S)]
    dense = _wake(session, WAKES, 0.005)
    return {
        "wake.p50_ms": 1e3 * statistics.median(dense),
        "wake.p99_ms": 1e3 * percentile(dense, 0.99),
        "wake.samples": len(dense),
        "wake.silent_ms": 1e3 * statistics.median(silent),
        "wake.silent_worst_ms": 1e3 * max(silent),
    }


def _wake(session: Session, count: int, pause: float) -> list[float]:
    numbers = session.next_numbers(count)
    place = len(session.ledger)
    limit = DENSE_LIMIT_S if count > 1 else pause * 3
    answer = session.order("wake", count=count, first=numbers.start, pause=pause, limit=limit)
    times = answer["times"]
    return waits(times, numbers.start, session.ledger.wait(place, len(times), 10))


def waits(times: Sequence[float], first: int, records: Sequence[Record]) -> list[float]:
    """Seconds that each job waited; ``times[i]`` is when job ``first + i`` was enqueued."""
    return [record.at - times[record.number - first] for record in records]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
