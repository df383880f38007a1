"""What is measured on: no names, no places."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path


def cpu_model(text: str) -> str:
    """The model's name from /proc/cpuinfo."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def steal_share(first: str, last: str) -> float:
    """Share of CPU time that the hypervisor gave to others, between two texts of /proc/stat."""
    before, after = _cpu_fields(first), _cpu_fields(last)
    spent = [now - then for then, now in zip(before, after, strict=True)]
    return spent[7] / max(1, sum(spent[:8]))


def _cpu_fields(text: str) -> list[int]:
    return [int(field) for field in text.splitlines()[0].split()[1:]]


def read_stat() -> str:
    """/proc/stat now."""
    return Path("/proc/stat").read_text()


def describe() -> dict[str, str | int]:
    """Cores, CPU, kernel, Python, date."""
    return {
        "cores": os.cpu_count() or 1,
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "load at the start": f"{os.getloadavg()[0]:.2f}",
    }
