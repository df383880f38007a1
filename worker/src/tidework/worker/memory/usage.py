"""Memory of a process as PSS: its own pages, and its share of those that it shares with others."""

from __future__ import annotations

import os
from pathlib import Path

from tidework.worker.process import children_of

MIB = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")


def pss_bytes(pid: int) -> int | None:
    """PSS of the process, None if it has ended or the system does not tell (not Linux).

    Costs the kernel a walk over the page tables: 0.2 to some milliseconds.
    """
    try:
        with Path(f"/proc/{pid}/smaps_rollup").open("rb") as rollup:
            for line in rollup:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def rss_bytes(pid: int) -> int:
    """All pages of the process, shared ones in full; 0 if it has ended. Costs little."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


def descendants_of(pid: int) -> list[int]:
    """Pids of all processes below this one."""
    found: list[int] = []
    look_at = [pid]
    while look_at:
        children = children_of(look_at.pop())
        found += children
        look_at += children
    return found


def family_bytes(pid: int) -> int:
    """PSS of the process and of all that it started, directly or not."""
    return sum(pss_bytes(found) or 0 for found in (pid, *descendants_of(pid)))
