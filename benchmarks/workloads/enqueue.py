"""Enqueueing without a worker: the client's cost, and the server's memory for what waits."""

from __future__ import annotations

import time

from benchmarks.pace import PACE
from benchmarks.session import Session
from benchmarks.workloads import Figures

SINGLES = 1_000
BULK = 10_000
TEXT = "x" * 200


def enqueue(session: Session) -> Figures:
    """Rates per second, client CPU in microseconds and server memory in bytes, per job."""
    session.enqueue("noop", 100, bulk=False)
    session.enqueue("noop", 200)
    began = time.monotonic()
    _, single = session.enqueue("noop", SINGLES, bulk=False)
    single_pace = PACE.since(began)
    session.server.clear()
    empty = session.server.reading()
    began = time.monotonic()
    _, bulk = session.enqueue("noop", BULK)
    bulk_pace = PACE.since(began)
    small = session.server.reading()
    session.server.clear()
    empty_again = session.server.reading()
    session.enqueue("noop", BULK, text=TEXT)
    large = session.server.reading()
    return {
        "enqueue.single.cpu_us": single["cpu"] / SINGLES * 1e6,
        "enqueue.single.rate": SINGLES / single["wall"],
        "enqueue.single.pace": single_pace,
        "enqueue.bulk.cpu_us": bulk["cpu"] / BULK * 1e6,
        "enqueue.bulk.rate": BULK / bulk["wall"],
        "enqueue.bulk.redis_us": (small.cpu - empty.cpu) / BULK * 1e6,
        "enqueue.bulk.pace": bulk_pace,
        "memory.small": (small.memory - empty.memory) / BULK,
        "memory.text": (large.memory - empty_again.memory) / BULK,
    }
