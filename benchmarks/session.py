"""A system at work: a fresh server, a producer in the system's environment, and its workers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks import processes
from benchmarks.environments import PEERS
from benchmarks.ledger import Ledger
from benchmarks.server import Server

PROGRAM = Path(__file__).parent / "program"
WARM_UP = 50
START_LIMIT_S = 60.0
ANSWER_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class System:
    """What is measured: an app of peers/, in one of its variants.

    bin: the folder of programs of its environment; variables: further ones of its processes
    """

    name: str
    peer: str
    bin: Path
    variables: tuple[tuple[str, str], ...] = ()


class Worker:
    """The processes of one worker: the roots and their descendants."""

    def __init__(
        self, commands: Iterable[list[str]], environment: dict[str, str], log: Path, cwd: Path
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._roots = [
                subprocess.Popen(
                    [str(Path(environment["BENCHMARK_BIN"]) / command[0]), *command[1:]],
                    env=environment,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                for command in commands
            ]

    def tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-2000:]

    @property
    def roots(self) -> list[int]:
        """Pids of what was started."""
        return [root.pid for root in self._roots]

    def tree(self) -> list[processes.ProcessStat]:
        """All processes now, the roots first. Raises RuntimeError if a root has ended."""
        self.raise_if_ended()
        return processes.tree_of(self.roots, processes.read_all())

    def raise_if_ended(self) -> None:
        """Raises RuntimeError if a root has ended."""
        for root in self._roots:
            if root.poll() is not None:
                raise RuntimeError(f"a worker ended, code {root.returncode}:\n{self.tail()}")

    def freeze(self) -> list[int]:
        """Stop all of it. Returns the pids."""
        return [stat.pid for stat in processes.freeze(self.roots)]

    def terminate(self, limit_s: float = 20.0) -> None:
        """Have it end by itself."""
        for root in self._roots:
            root.terminate()
        for root in self._roots:
            root.wait(limit_s)

    def kill(self) -> None:
        """SIGKILL all of it."""
        processes.kill(processes.freeze(self.roots))
        for root in self._roots:
            root.wait()


class Session:
    """A context manager; what it started has ended when it is left."""

    def __init__(self, system: System, server_kind: str, **variables: str) -> None:
        self.system = system
        self.server = Server(server_kind)
        self.ledger = Ledger()
        self.workers: list[Worker] = []
        self.variables = {**dict(system.variables), **variables}
        self._numbers = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            stack.callback(self.ledger.close)
            stack.enter_context(self.server)
            self._producer = _start_producer(self._environment(), self._folder)
            stack.callback(_stop_producer, self._producer)
            stack.callback(self.end_workers)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def worker(self) -> Worker:
        """The only one."""
        (worker,) = self.workers
        return worker

    def start_worker(self, concurrency: int, processes_wanted: int = 1) -> Worker:
        """Start one. ``processes_wanted``: over how many to spread, where that can be chosen."""
        described = self.order("describe", concurrency=concurrency, processes=processes_wanted)
        each = max(1, concurrency // processes_wanted)
        environment = self._environment(
            BENCHMARK_CONCURRENCY=str(each), BENCHMARK_PROCESSES=str(processes_wanted)
        )
        log = self._folder / f"worker-{len(self.workers)}"
        worker = Worker(described["commands"], environment, log, self._folder)
        self.workers.append(worker)
        return worker

    def warm_up(self) -> None:
        """Have the worker run some jobs."""
        place = len(self.ledger)
        self.enqueue("noop", WARM_UP)
        self.wait_for(place + WARM_UP)

    def wait_for(self, place: int, limit_s: float = START_LIMIT_S) -> None:
        """Wait until the ledger has so many records. Raises RuntimeError if that does not come."""
        deadline = time.monotonic() + limit_s
        while len(self.ledger) < place:
            for worker in self.workers:
                worker.raise_if_ended()
            if time.monotonic() > deadline:
                raise RuntimeError(f"no job ran:\n{self.workers[0].tail()}")
            time.sleep(0.01)

    def end_workers(self) -> None:
        """Kill all workers."""
        while self.workers:
            self.workers.pop().kill()

    def abort(self) -> None:
        """Kill what was started, so that whoever waits for it fails; from another thread."""
        self._producer.kill()
        for worker in list(self.workers):
            worker.kill()

    def end_producer(self) -> None:
        """Nothing will be enqueued any more."""
        _stop_producer(self._producer)

    def next_numbers(self, count: int) -> range:
        """Numbers for so many jobs, which no other job has."""
        first = self._numbers
        self._numbers += count
        return range(first, first + count)

    def enqueue(
        self, task: str, count: int, *, bulk: bool = True, **params: Any
    ) -> tuple[range, dict[str, float]]:
        """Enqueue jobs. Returns their numbers, and wall and CPU seconds of the producer."""
        numbers = self.next_numbers(count)
        spent = self.order(
            "enqueue", task=task, count=count, first=numbers.start, params=params, bulk=bulk
        )
        return numbers, spent

    def order(self, what: str, **order: Any) -> dict[str, Any]:
        """Have the producer do something. Raises RuntimeError if it dies of it."""
        assert self._producer.stdin is not None
        assert self._producer.stdout is not None
        self._producer.stdin.write(json.dumps({"do": what, **order}).encode() + b"\n")
        self._producer.stdin.flush()
        ready, _, _ = select.select([self._producer.stdout], [], [], ANSWER_LIMIT_S)
        line = self._producer.stdout.readline() if ready else b""
        if not line:
            tail = (self._folder / "producer").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the producer of {self.system.name} failed:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _environment(self, **variables: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TIDEWORK_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)  # it would compile everything at each start
        paths = [str(PEERS / self.system.peer), str(PROGRAM)]
        given = {**self.variables, **variables}
        if self.system.bin == Path(sys.executable).parent:
            paths.append(kept.get("PYTHONPATH", ""))  # what this Python finds, ours shall, too
        return {
            **kept,
            **given,
            "PATH": os.pathsep.join([str(self.system.bin), kept.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(filter(None, [given.get("PYTHONPATH"), *paths])),
            "BENCHMARK_BIN": str(self.system.bin),
            "BENCHMARK_REDIS": self.server.url,
            "BENCHMARK_LEDGER": str(self.ledger.path),
            "TIDEWORK_REDIS_URL": self.server.url,
        }


def _start_producer(environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "producer").open("wb") as errors:
        return subprocess.Popen(
            [str(Path(environment["BENCHMARK_BIN"]) / "python"), str(PROGRAM / "produce.py")],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )


def _stop_producer(producer: subprocess.Popen[bytes]) -> None:
    """It ends when its input does."""
    for pipe in (producer.stdin, producer.stdout):
        if pipe is not None:
            pipe.close()
    try:
        producer.wait(5)
    except subprocess.TimeoutExpired:
        producer.kill()
        producer.wait()
