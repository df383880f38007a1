"""Probes of the operator: /livez, /readyz and /metrics, served as the worker's are.

Alive: our own loop turns. Neither Redis nor the API server count: restarting the leader because
they are away would only add its own absence to theirs.
Ready: once everything was listed; that latches, so that a standby stays ready through an outage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from tidework.clock import Clock
from tidework.loop import Loop

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

TURN_WITHIN = 10.0
"""Seconds in which the loop has to turn."""

_PULSE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Number:
    """One number at one moment.

    name:      without the prefix ``tidework_operator_``, and without ``_total`` for counters
    text:      what it means, for people
    is_sum:    it only grows, from the start of the process on: a counter
    """

    name: str
    text: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """A histogram: ``counts`` per bucket of ``bounds``, one more for what is above the last."""

    name: str
    text: str
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


Reading = Number | Spread
Readings = Callable[[], Iterable[Reading]]


class OperatorHealth:
    """Answers the probes: implements Health of tidework.probes.

    waits_for: why not everything was listed yet, '' once it was
    readings:  the numbers as they are; both are called from the probes' thread

    ``loop`` has to run in the loop that is watched.
    """

    def __init__(self, clock: Clock, *, waits_for: Callable[[], str], readings: Readings) -> None:
        self.stopping = False
        self.loop = Loop("pulse", self._tick)
        self._clock = clock
        self._waits_for = waits_for
        self._page = _Page(readings)
        self._turned_at = clock.monotonic()

    async def _tick(self) -> timedelta:
        self._turned_at = self._clock.monotonic()
        return _PULSE

    def livez(self) -> str:
        if (still := self._clock.monotonic() - self._turned_at) > TURN_WITHIN:
            return f"the operator's loop has not turned for {still:.0f} s"
        return ""

    def readyz(self) -> str:
        if self.stopping:
            return "stopping"
        return self._waits_for()

    def redisz(self) -> str:
        """Always fine. The operator has many servers: the conditions of TaskQueues tell of each."""
        return ""

    def metrics(self) -> bytes:
        return self._page.text()


class _Page:
    """The text of /metrics. prometheus-client is imported at the first request."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._registry: CollectorRegistry | None = None

    def text(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest

        if self._registry is None:
            self._registry = CollectorRegistry()
            self._registry.register(_Collector(self._readings))
        return generate_latest(self._registry)


class _Collector:
    """Makes Prometheus' families out of readings; readings of one name are one family."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def describe(self) -> Iterable[Metric]:
        """Nothing is read at registration."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Called at each scrape, in the thread of the probes."""
        numbers: dict[str, list[Number]] = {}
        for reading in self._readings():
            if isinstance(reading, Spread):
                yield _histogram(reading)
            else:
                numbers.setdefault(reading.name, []).append(reading)
        for found in numbers.values():
            yield _family(found)


def _family(found: list[Number]) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    first = found[0]
    labels = list(first.labels)
    kind = CounterMetricFamily if first.is_sum else GaugeMetricFamily
    family = kind(f"tidework_operator_{first.name}", first.text, labels=labels)
    for number in found:
        family.add_metric([number.labels[label] for label in labels], number.value)
    return family


def _histogram(found: Spread) -> Metric:
    from prometheus_client.metrics_core import HistogramMetricFamily

    family = HistogramMetricFamily(f"tidework_operator_{found.name}", found.text)
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip([*map(str, found.bounds), "+Inf"], found.counts, strict=True):
        below += count
        buckets.append((bound, below))
    family.add_metric([], buckets, sum_value=found.total)
    return family
