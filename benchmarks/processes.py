"""Processes by way of /proc: who descends from whom, what they cost, and how they end.

CPU time of a tree is utime + stime of its living processes and of the children that they reaped.
A tree is frozen before it is killed, so that nobody in it starts or buries others meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One process at one moment.

    started:  tells it from a namesake
    cpu:      seconds so far, kernel: those of them in the kernel; reaped_*: of reaped children
    """

    pid: int
    parent: int
    state: str
    started: int
    cpu: float
    kernel: float
    reaped_cpu: float
    reaped_kernel: float


def parse_stat(text: str) -> ProcessStat:
    """Read /proc/PID/stat. The name in brackets may hold anything."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    times = [int(field) * TICK_S for field in fields[11:15]]
    return ProcessStat(
        pid=int(head.partition(" ")[0]),
        parent=int(fields[1]),
        state=fields[0],
        started=int(fields[19]),
        cpu=times[0] + times[1],
        kernel=times[1],
        reaped_cpu=times[2] + times[3],
        reaped_kernel=times[3],
    )


def read_all() -> dict[int, ProcessStat]:
    """Every process but zombies, by pid."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                stat = parse_stat((path / "stat").read_text())
                if stat.state not in "ZX":
                    found[stat.pid] = stat
    return found


def tree_of(roots: Iterable[int], processes: dict[int, ProcessStat]) -> list[ProcessStat]:
    """The roots that are there and all that descends from them, parents first."""
    children: dict[int, list[int]] = {}
    for stat in processes.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    found: list[ProcessStat] = []
    left = list(roots)
    while left:
        pid = left.pop(0)
        if pid in processes:
            found.append(processes[pid])
            left += children.get(pid, [])
    return found


def cpu_of(tree: Iterable[ProcessStat]) -> float:
    """CPU seconds of a tree so far."""
    return sum(stat.cpu + stat.reaped_cpu for stat in tree)


def exact_cpu_of(tree: Iterable[ProcessStat]) -> float:
    """CPU seconds so far of all threads that live, as the scheduler counted them.

    Ticks are too coarse for what hardly runs: whoever a timer wakes up runs just when they are
    counted. As ``cpu_of`` where the system keeps no such account.
    """
    try:
        return sum(parse_schedstat(path.read_text()) for path in _schedstats(tree))
    except OSError:
        return cpu_of(tree)


def _schedstats(tree: Iterable[ProcessStat]) -> Iterable[Path]:
    for stat in tree:
        yield from Path(f"/proc/{stat.pid}/task").glob("*/schedstat")


def parse_schedstat(text: str) -> float:
    """Seconds on a CPU: the first field, in ns."""
    return int(text.split(maxsplit=1)[0]) / 1e9


def pss_of(tree: Iterable[ProcessStat]) -> int:
    """Bytes of memory, shared pages divided among those who share them."""
    total = 0
    for stat in tree:
        with contextlib.suppress(OSError):
            total += parse_pss(Path(f"/proc/{stat.pid}/smaps_rollup").read_text())
    return total


def parse_pss(text: str) -> int:
    """Bytes of the line ``Pss:`` of smaps_rollup."""
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == "Pss":
            return int(rest.split()[0]) * 1024
    raise ValueError("no line 'Pss:' in smaps_rollup")


def freeze(roots: Iterable[int]) -> list[ProcessStat]:
    """Stop a tree, descendants that appear meanwhile included. Returns all of it.

    Children first: no job is to end after the supervisor that would have heard of it was stopped.
    """
    frozen: dict[int, ProcessStat] = {}
    while True:
        new = [stat for stat in tree_of(roots, read_all()) if stat.pid not in frozen]
        if not new:
            return list(frozen.values())
        for stat in reversed(new):
            frozen[stat.pid] = stat
            send(stat, signal.SIGSTOP)


def send(process: ProcessStat, number: signal.Signals) -> None:
    """Signal a process, if it is there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)


def kill(frozen: Iterable[ProcessStat]) -> None:
    """SIGKILL a frozen tree, and wait until only zombies of it are left."""
    tree = list(frozen)
    for stat in tree:
        send(stat, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        now = read_all()
        if not any(s.pid in now and now[s.pid].started == s.started for s in tree):
            return
        time.sleep(0.01)
    raise TimeoutError(f"killed processes that are still there: {[stat.pid for stat in tree]}")
