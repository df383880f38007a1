"""Turns: which waiting job comes next. Sources take turns, and jobs of one come in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidework.worker.held import HeldJob, JobSource, Line


class Turns:
    """Jobs of one line that wait, source by source. Who adds some to a line calls ``look``."""

    def __init__(self, sources: Sequence[JobSource], line: Line) -> None:
        self._sources = sources
        self._line = line
        self._turns: dict[JobSource, None] = {}

    def look(self) -> None:
        """Find the sources with waiting jobs."""
        for source in self._sources:
            if source.lines[self._line]:
                self._turns.setdefault(source)

    def first(self) -> HeldJob | None:
        """The job whose turn it is."""
        for source in list(self._turns):
            if line := source.lines[self._line]:
                return line[0]
            del self._turns[source]
        return None

    def take(self, most: int, fits: Callable[[HeldJob], bool]) -> list[HeldJob]:
        """Up to ``most`` that fit, of the source whose turn it is and then of others."""
        taken: list[HeldJob] = []
        while len(taken) < most and (job := self.first()) is not None and fits(job):
            source = job.source
            line = source.lines[self._line]
            while len(taken) < most and line and fits(line[0]):
                taken.append(line.popleft())
            # The others come first next time.
            del self._turns[source]
            if line:
                self._turns[source] = None
        return taken

    def count(self) -> int:
        """How many wait."""
        return sum(len(source.lines[self._line]) for source in self._turns)


def any_job(_job: HeldJob) -> bool:
    """Every job fits."""
    return True


def give_back(jobs: Sequence[HeldJob]) -> None:
    """Hand jobs that did not start back to their sources, in order."""
    by_source: dict[JobSource, list[HeldJob]] = {}
    for job in jobs:
        by_source.setdefault(job.source, []).append(job)
    for source, found in by_source.items():
        source.take_back(found)
