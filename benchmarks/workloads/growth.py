"""Does a job cost more when many wait, or when they are spread over many queues?"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.pace import PACE
from benchmarks.processes import cpu_of
from benchmarks.session import Session
from benchmarks.workloads import Figures
from benchmarks.workloads.drain import drain

SMALL = 1_000
LARGE = 1_000_000
WATCHED = 20_000


def few(session: Session) -> Figures:
    """Jobs come in thousands; the last of each is waited for."""
    session.start_worker(2)
    session.warm_up()
    began, before = time.monotonic(), Costs.of(session)
    for _ in range(WATCHED // SMALL):
        place = len(session.ledger)
        session.enqueue("noop", SMALL)
        session.wait_for(place + SMALL)
    spent = Costs.of(session)
    return {
        "backlog.1k.cpu_us": (spent.cpu - before.cpu) / WATCHED * 1e6,
        "backlog.1k.redis_us": (spent.redis - before.redis) / WATCHED * 1e6,
        "backlog.1k.pace": PACE.since(began),
    }


def million(session: Session) -> Figures:
    """The first of a million that wait."""
    empty = session.server.reading().cpu
    session.enqueue("noop", LARGE)
    enqueued = session.server.reading().cpu
    session.start_worker(2)
    session.wait_for(SMALL)
    place, began, before = len(session.ledger), time.monotonic(), Costs.of(session)
    session.wait_for(place + WATCHED)
    done, spent = len(session.ledger) - place, Costs.of(session)
    working = (spent.redis - before.redis) / done
    return {
        "backlog.1m.cpu_us": (spent.cpu - before.cpu) / done * 1e6,
        "backlog.1m.redis_us": ((enqueued - empty) / LARGE + working) * 1e6,
        "backlog.1m.pace": PACE.since(began),
    }


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds so far: of the worker's processes and of the server."""

    cpu: float
    redis: float

    @classmethod
    def of(cls, session: Session) -> Costs:
        """Now."""
        return cls(cpu_of(session.worker.tree()), session.server.reading().cpu)


def queues(session: Session) -> Figures:
    """Jobs over as many queues as the app was told to have."""
    count = session.variables["BENCHMARK_QUEUES"]
    found = drain(session, 2, "spread", WATCHED)
    return {
        f"queues.{count}.cpu_us": found.cpu / found.jobs * 1e6,
        f"queues.{count}.redis_us": found.server_cpu / WATCHED * 1e6,
        f"queues.{count}.pace": found.pace,
    }
