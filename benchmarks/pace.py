"""The machine's pace: on a shared host a virtual CPU runs at half its speed for seconds.

A thread runs a short fixed loop 25 times a second (about 1 % of a core) and notes the CPU time
that it took. CPU times and rates are put in relation to the best pace of the run, so that systems
that met a slow moment can be compared with those that did not; the JSON keeps what was measured.
"""

from __future__ import annotations

import statistics
import threading
import time

ROUNDS = 3_000
EVERY_S = 0.04


class Pace:
    """What was sampled since ``start``."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []

    def start(self) -> None:
        """Sample in a daemon thread until the process ends."""
        threading.Thread(target=self._sample, daemon=True).start()

    def since(self, began: float) -> float:
        """Mean microseconds of the loop since a moment of the monotonic clock; 0: no sample."""
        values = [value for at, value in self._samples if at >= began]
        return statistics.fmean(values) if values else 0.0

    def best(self) -> float:
        """The pace that one sample of 20 exceeds, of the whole run."""
        values = sorted(value for _, value in self._samples)
        return values[len(values) // 20] if values else 0.0

    def _sample(self) -> None:
        while True:
            began = time.thread_time_ns()
            value = 1
            for _ in range(ROUNDS):
                value = (value * 1103515245 + 12345) & 0x7FFFFFFF
            took = (time.thread_time_ns() - began) / 1e3
            self._samples.append((time.monotonic(), took))
            time.sleep(EVERY_S)


PACE = Pace()


def speed(measured: float, best: float) -> float:
    """Share of the best pace, 1 = at that pace (or unknown)."""
    return best / measured if measured and best else 1.0


def at_full_speed(figures: dict[str, float], best: float) -> dict[str, float]:
    """Figures as if the machine had kept its best pace.

    Of a group of names that has a ``.pace``, those that end in ``_us`` are CPU times and those
    that end in ``rate`` are rates. ``.pace`` becomes ``.speed``, a percentage.
    """
    found = dict(figures)
    for name, measured in figures.items():
        group, _, last = name.rpartition(".")
        if last != "pace":
            continue
        share = speed(measured, best)
        del found[name]
        found[f"{group}.speed"] = 100 * share
        for other, value in figures.items():
            if other.rpartition(".")[0] == group and other.endswith("_us"):
                found[other] = value * share
            elif other.rpartition(".")[0] == group and other.endswith("rate"):
                found[other] = value / share
    return found
