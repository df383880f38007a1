"""How much memory there may be, and how much of it is used: of the container, or of this worker.

A container's memory is counted as the kubelet's working set: without the pages of files that were
not used lately, which the kernel takes back before it kills anybody.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from tidework.worker.memory.usage import descendants_of, pss_bytes, rss_bytes

_NO_LIMIT = 1 << 60
"""Version 1 says 2^63 less a page where there is no limit."""


class Gauge(Protocol):
    """A limit in bytes, and what counts towards it."""

    @property
    def limit(self) -> int:
        """Bytes."""

    def used(self, exact_from: int) -> int | None:
        """Bytes in use; if they are fewer than ``exact_from``, perhaps too many: that costs less.

        None if the system does not tell any more.
        """


@dataclass(frozen=True, slots=True)
class _Names:
    """What files and lines are called in a version of control groups."""

    limit: str
    used: str
    inactive: bytes


_V1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file ")
_V2 = _Names("memory.max", "memory.current", b"inactive_file ")


@dataclass(frozen=True, slots=True)
class CgroupGauge:
    """Measures a control group: everything in the container, whoever uses it."""

    folder: Path
    limit: int
    names: _Names

    def used(self, exact_from: int) -> int | None:
        used = _read_number(self.folder / self.names.used)
        if used is None or used < exact_from:
            return used
        return max(0, used - self._inactive())

    def _inactive(self) -> int:
        try:
            lines = (self.folder / "memory.stat").read_bytes().splitlines()
        except OSError:
            return 0
        return next((int(x.split()[1]) for x in lines if x.startswith(self.names.inactive)), 0)


@dataclass(frozen=True, slots=True)
class WorkerGauge:
    """Measures this process and all below it, by PSS, for a limit that was set by hand."""

    limit: int

    def used(self, exact_from: int) -> int | None:
        pids = [os.getpid(), *descendants_of(os.getpid())]
        rough = sum(rss_bytes(pid) for pid in pids)
        if rough < exact_from:
            return rough
        return sum(pss_bytes(pid) or 0 for pid in pids)


def find_gauge(
    limit: int | None,
    membership: Path = Path("/proc/self/cgroup"),
    root: Path = Path("/sys/fs/cgroup"),
) -> Gauge | None:
    """What to look at: the smaller of ``limit`` (bytes) and the container's, None without any.

    The container's is the smallest on the way from its control group up to ``root``. A group that
    is not to be seen from within (no namespace of its own) is left out.
    """
    found: list[Gauge] = [] if limit is None else [WorkerGauge(limit)]
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _on_the_way_up(root, path, _V2)
        elif "memory" in controllers.split(","):
            found += _on_the_way_up(root / "memory", path, _V1)
    return min(found, key=lambda gauge: gauge.limit, default=None)


def _on_the_way_up(root: Path, path: str, names: _Names) -> list[CgroupGauge]:
    inner = PurePosixPath(path.lstrip("/"))
    # ".." is a group above the namespace's own: all that is to be seen is the root.
    inside = [] if ".." in inner.parts else [root / part for part in (inner, *inner.parents)]
    gauges = []
    for folder in dict.fromkeys([*inside, root]):
        limit = _read_number(folder / names.limit)
        if limit is not None and limit < _NO_LIMIT:
            gauges.append(CgroupGauge(folder, limit, names))
    return gauges


def _read_number(file: Path) -> int | None:
    """None for a file that is not there, and for ``max``."""
    try:
        return int(file.read_bytes())
    except (OSError, ValueError):
        return None
