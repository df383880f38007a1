"""Held jobs and their source, as the tests of slots and stops need them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence

from tidework.model.identity import QueueName
from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.worker.held import HeldJob, Line


class Notebook:
    """What jobs said, in order: id, progress, positions."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bytes, bytes]] = []

    def note(self, job: HeldJob) -> None:
        self.said.append((job.id, job.progress, job.positions))


class Source:
    """A JobSource that writes down what it is told."""

    def __init__(self, index: int = 0) -> None:
        self.queue = QueueName("default", "q")
        self.index = index
        self.held: dict[str, HeldJob] = {}
        self.lines: tuple[deque[HeldJob], ...] = tuple(deque() for _ in Line)
        self.hungry = True
        self.notes = Notebook()
        self.unsettled = False
        self.settled: dict[str, Outcome] = {}
        self.forgotten: list[str] = []
        self.taken_back: list[str] = []
        self.offers = 0

    @property
    def waiting(self) -> deque[HeldJob]:
        return self.lines[Line.COMMON]

    @property
    def wants(self) -> bool:
        return self.hungry

    def settle(self, job: HeldJob, outcome: Outcome, seconds: float | None) -> None:
        assert job.id not in self.settled
        job.outcome = outcome
        self.settled[job.id] = outcome

    def forget(self, job: HeldJob) -> None:
        self.forgotten.append(job.id)

    def take_back(self, jobs: Sequence[HeldJob]) -> None:
        self.taken_back += [job.id for job in jobs]
        for job in reversed(jobs):
            self.lines[job.line].appendleft(job)

    def on_capacity(self) -> None:
        self.offers += 1

    def add(
        self,
        *names: str,
        task: str = "t",
        losses: int = 0,
        timeout: float = 600.0,
        line: Line = Line.COMMON,
    ) -> None:
        for name in names:
            job = held(name, source=self, task=task, losses=losses, timeout=timeout)
            job.line = line
            self.lines[line].append(job)


def held(
    name: str,
    *,
    source: Source | None = None,
    task: str = "t",
    attempt: int = 1,
    max_attempts: int = 3,
    losses: int = 0,
    timeout: float = 600.0,
) -> HeldJob:
    body = json.dumps({"id": name, "task": task}).encode()
    claimed = ClaimedJob(name, "token", attempt, 1, losses, 0, body)
    return HeldJob(claimed, source or Source(), TaskSpec(task, "q"), timeout, max_attempts, 0.0)
