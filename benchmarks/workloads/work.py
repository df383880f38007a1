"""Jobs that do something: wait 50 ms at concurrency 10, compute 5 ms on two slots."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import ledger
from benchmarks.pace import PACE
from benchmarks.program import work
from benchmarks.session import PROGRAM, Session
from benchmarks.workloads import Figures, Plan
from benchmarks.workloads.drain import drain

NAPS = 400
BURNS = 600


def naps(session: Session) -> Figures:
    """Jobs per second of a worker that is there already; the ideal is 200."""
    place = len(session.ledger)
    session.enqueue("nap", NAPS, seconds=0.05)
    session.wait_for(place + 2 * NAPS)
    return {"io.rate": ledger.job_rate(session.ledger.since(place))}


def burns(session: Session, plan: Plan) -> Figures:
    """Jobs per second; then, on the same machine at about the same time, those of ``bare``."""
    found = drain(session, 2, "burn", BURNS, rounds=plan.rounds_of_5_ms)
    session.end_workers()
    return {
        "cpu.rate": ledger.end_rate(found.records),
        "cpu.pace": found.pace,
        "cpu.busy_percent": 100 * ledger.busy_share(found.records, 2),
        **bare(plan),
    }


def bare(plan: Plan) -> Figures:
    """The same jobs in a loop in each of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        command = [sys.executable, str(PROGRAM / "work.py"), str(BURNS // 2)]
        environment = {**os.environ, "BENCHMARK_LEDGER": str(path)}
        began = time.monotonic()
        started = [
            subprocess.Popen([*command, str(plan.rounds_of_5_ms)], env=environment)
            for _ in range(2)
        ]
        for process in started:
            process.wait(60)
        records = ledger.parse(path.read_bytes())
        return {"bare.rate": ledger.end_rate(records), "bare.pace": PACE.since(began)}


def calibrate() -> int:
    """Rounds of ``burn`` that take 5 ms at the best pace of about three seconds."""
    best = float("inf")
    for _ in range(60):
        began = time.perf_counter()
        work.burn(0, 10_000)
        best = min(best, time.perf_counter() - began)
        time.sleep(0.05)
    return round(10_000 * 0.005 / best)
