"""What a probe costs the worker: ``python -m benchmarks.probes``. CPU time per GET, the median.

The worker's own server of probes and page of metrics, in a process of its own, over numbers as a
worker of 8 tasks has them after its first jobs; asked by new connections, as a kubelet does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from benchmarks.processes import parse_stat
from tidework.metrics import MetricsPage, WorkerNumbers
from tidework.probes import ProbeServer

PATHS = ("/livez", "/readyz", "/metrics")
GETS = 1000
ROUNDS = 5
TASKS = 8
EVENTS = ("claimed", "succeeded", "failed", "retried", "dead")


class Answers:
    """What a worker in good order answers."""

    def __init__(self) -> None:
        numbers = WorkerNumbers("0", 4)
        for task in range(TASKS):
            key = ("emails", f"task-{task}")
            for event in EVENTS:
                numbers.jobs[event][key] += 1
            numbers.run_seconds[key].note(0.1)
        self._page = MetricsPage(numbers)

    def livez(self) -> str:
        return ""

    def readyz(self) -> str:
        return ""

    def redisz(self) -> str:
        return ""

    def metrics(self) -> bytes:
        return self._page.text()


def serve() -> None:
    """Until standard input ends."""
    print(ProbeServer("127.0.0.1", 0, Answers()).port, flush=True)
    sys.stdin.read()


def cpu_of(pid: int) -> float:
    """Seconds so far."""
    return parse_stat(Path(f"/proc/{pid}/stat").read_text()).cpu


def ask(port: int, path: str) -> int:
    """One GET; the size of its answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    size = len(answer.read())
    connection.close()
    if answer.status != 200:
        raise AssertionError(f"{path}: {answer.status}")
    return size


def main() -> None:
    """Print microseconds per GET."""
    if "--serve" in sys.argv:
        serve()
        return
    command = [sys.executable, "-m", "benchmarks.probes", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for path in PATHS:
            costs, waits, size = [], [], ask(port, path)
            for _ in range(ROUNDS):
                before, began = cpu_of(server.pid), time.perf_counter()
                for _ in range(GETS):
                    ask(port, path)
                waits.append((time.perf_counter() - began) / GETS)
                costs.append((cpu_of(server.pid) - before) / GETS)
            print(
                f"{path:<9} {size:>6} bytes  CPU {median(costs) * 1e6:>6.0f} us"
                f"  (worst round {max(costs) * 1e6:.0f})  answered in {median(waits) * 1e6:.0f} us"
            )
        server.stdin.close()


if __name__ == "__main__":
    main()
