"""The file in which jobs count themselves, read by the harness. program/work.py writes it."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.program.work import END, RECORD, START

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


class Record(NamedTuple):
    """One line of a job: ``kind`` START or END, ``at`` monotonic seconds."""

    kind: bytes
    number: int
    pid: int
    at: float


def parse(data: bytes) -> list[Record]:
    """Records of whole size; a rest is left out."""
    whole = len(data) - len(data) % RECORD.size
    return [Record(*fields) for fields in RECORD.iter_unpack(data[:whole])]


class Ledger:
    """One file; readers take what was added since a place."""

    def __init__(self) -> None:
        folder = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self._folder = tempfile.TemporaryDirectory(prefix="benchmark-", dir=folder)
        self.path = Path(self._folder.name) / "ledger"
        self.path.touch()

    def __len__(self) -> int:
        return self.path.stat().st_size // RECORD.size

    def since(self, place: int) -> list[Record]:
        """Records from number ``place`` on."""
        with self.path.open("rb") as file:
            file.seek(place * RECORD.size)
            return parse(file.read())

    def wait(self, place: int, count: int, limit_s: float) -> list[Record]:
        """``count`` records from ``place`` on, or fewer when the time is up."""
        deadline = time.monotonic() + limit_s
        while len(self) < place + count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.since(place)

    def close(self) -> None:
        """Delete it."""
        self._folder.cleanup()


def end_rate(records: Iterable[Record]) -> float:
    """Ends per second, from the first end to the last."""
    ends = [record.at for record in records if record.kind == END]
    return (len(ends) - 1) / (max(ends) - min(ends))


def job_rate(records: Iterable[Record]) -> float:
    """Jobs per second, from the first start to the last end."""
    known = list(records)
    ends = [record.at for record in known if record.kind == END]
    return len(ends) / (max(ends) - min(record.at for record in known))


def busy_share(records: Iterable[Record], slots: int) -> float:
    """Share of the slots' time, from the first end to the last, in which jobs ran."""
    known = list(records)
    starts = {record.number: record.at for record in known if record.kind == START}
    ends = [record for record in known if record.kind == END and record.number in starts]
    first, last = min(r.at for r in ends), max(r.at for r in ends)
    ran = sum(record.at - max(first, starts[record.number]) for record in ends)
    return ran / (slots * (last - first))


@dataclass(frozen=True, slots=True)
class Tally:
    """How often jobs ran: never to their end, and to their end more than once."""

    lost: int
    doubled: int


def tally(records: Iterable[Record], numbers: Iterable[int]) -> Tally:
    """Compare what ran with what was enqueued."""
    ended = Counter(record.number for record in records if record.kind == END)
    wanted = list(numbers)
    return Tally(
        lost=sum(1 for number in wanted if not ended[number]),
        doubled=sum(1 for number in wanted if ended[number] > 1),
    )


def held_by(pids: Iterable[int], records: Iterable[Record]) -> set[int]:
    """Numbers of the jobs that these processes have started and not ended."""
    known = set(pids)
    held: set[int] = set()
    for record in records:
        if record.pid in known:
            if record.kind == START:
                held.add(record.number)
            else:
                held.discard(record.number)
    return held
