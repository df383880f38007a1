"""A backlog of no-ops is worked off: the rate, and the CPU time of everybody in it.

The backlog is there before the workers start, so that they do not race with the producer. What is
counted of them begins when a tenth is done: their start is not in it. CPU times are read half a
second after the last job, so that acknowledgements that come late are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks import ledger, processes
from benchmarks.ledger import Record
from benchmarks.pace import PACE
from benchmarks.server import RequestCount
from benchmarks.session import Session
from benchmarks.workloads import Figures

LIMIT_S = 60.0
AFTERWARDS_S = 0.5
UNCOUNTED = 10
"""The first of so many parts."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain gave.

    records, cpu, supervisor: of the counted ``jobs``; CPU seconds of all, and of the root process
    server_cpu: seconds for the whole life of every job
    """

    numbers: range
    everything: list[Record]
    records: list[Record]
    jobs: int
    cpu: float
    supervisor: float
    server_cpu: float
    pace: float


def drain(session: Session, concurrency: int, task: str, count: int, **params: Any) -> Drained:
    """Enqueue, start a worker, watch it to the end."""
    ends = 1 if task in {"noop", "spread"} else 2
    server = session.server.reading()
    numbers, _ = session.enqueue(task, count, **params)
    worker = session.start_worker(concurrency, 2)
    session.wait_for(count * ends // UNCOUNTED)
    began = time.monotonic()
    tree, place = worker.tree(), len(session.ledger)
    everything = session.ledger.wait(0, count * ends, LIMIT_S)
    time.sleep(AFTERWARDS_S)
    after = worker.tree()
    return Drained(
        numbers=numbers,
        everything=everything,
        records=everything[place:],
        jobs=count - place // ends,
        cpu=processes.cpu_of(after) - processes.cpu_of(tree),
        supervisor=after[0].cpu - tree[0].cpu,
        server_cpu=session.server.reading().cpu - server.cpu,
        pace=PACE.since(began),
    )


def noop(session: Session, concurrency: int, count: int) -> Figures:
    """The drain that everything is compared by; microseconds per job."""
    found = drain(session, concurrency, "noop", count)
    tally = ledger.tally(found.everything, found.numbers)
    name = f"drain.{concurrency}"
    return {
        f"{name}.rate": ledger.end_rate(found.records),
        f"{name}.cpu_us": found.cpu / found.jobs * 1e6,
        f"{name}.supervisor_us": found.supervisor / found.jobs * 1e6,
        f"{name}.redis_us": found.server_cpu / count * 1e6,
        f"{name}.pace": found.pace,
        f"{name}.lost": tally.lost,
        f"{name}.doubled": tally.doubled,
    }


def requests(session: Session, count: int) -> Figures:
    """Requests of clients per job, counted by MONITOR: untimed, as that slows the server."""
    with RequestCount(session.server) as producing:
        session.enqueue("noop", count)
    with RequestCount(session.server) as working:
        session.start_worker(2, 2)
        session.wait_for(count // UNCOUNTED)
        before, place = working.total, len(session.ledger)
        session.ledger.wait(count, 0, LIMIT_S)
        time.sleep(AFTERWARDS_S)
    return {
        "requests.producer": producing.total / count,
        "requests.worker": (working.total - before) / (len(session.ledger) - place),
    }
