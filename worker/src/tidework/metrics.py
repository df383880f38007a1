"""The worker's numbers, and the one door to prometheus-client.

Counting a job is plain additions; the text that Prometheus reads is made when it asks, by a
collector that reads the numbers. Series: ``tidework_jobs_<event>_total{queue,task}`` and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

JOB_EVENTS = {
    "claimed": "Jobs taken under a lease",
    "succeeded": "Attempts that succeeded",
    "result_refused": "Attempts that succeeded and whose result could not be kept",
    "failed": "Attempts that failed, timeouts included",
    "retried": "Failed attempts that will be followed by another",
    "dead": "Jobs buried",
    "released": "Jobs released uncounted",
    "lost": "Started jobs whose child died",
    "cancelled": "Running jobs stopped on request",
    "lease_lost": "Attempts whose result was refused: the lease was no longer ours",
}
RUN_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

QueueTask = tuple[str, str]


@dataclass(slots=True)
class RunSeconds:
    """A histogram: attempts per bucket of RUN_SECONDS (the last is beyond all), and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(RUN_SECONDS) + 1))
    total: float = 0.0

    def note(self, seconds: float) -> None:
        """An attempt ran for ``seconds``."""
        self.counts[bisect_left(RUN_SECONDS, seconds)] += 1
        self.total += seconds


class WorkerNumbers:
    """What a worker counts from its start on.

    last_job_at: monotonic seconds, last_heartbeat_at: Unix seconds; 0 = never
    rejected: documents that became dead letters, by queue; redis_errors: by name of the error
    redis_trouble: why the last request to Redis failed, '' if it did not
    """

    def __init__(self, version: str, slots: int, busy: Callable[[], int] = lambda: 0) -> None:
        self.version = version
        self.slots = slots
        self.busy = busy
        self.jobs: dict[str, dict[QueueTask, int]] = {
            event: defaultdict(int) for event in JOB_EVENTS
        }
        self.run_seconds: dict[QueueTask, RunSeconds] = defaultdict(RunSeconds)
        self.rejected: dict[str, int] = defaultdict(int)
        self.redis_errors: dict[str, int] = defaultdict(int)
        self.redis_trouble = ""
        self.last_job_at = 0.0
        self.last_heartbeat_at = 0.0

    def total(self, event: str) -> int:
        """The number of an event over all queues and tasks."""
        return sum(self.jobs[event].values())


class _Collector:
    """Makes Prometheus' families out of the numbers; registered with a registry of its own."""

    def __init__(self, numbers: WorkerNumbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterable[Metric]:
        """Called by the registry at each scrape, in the thread of the probes."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        numbers = self._numbers
        for event, text in JOB_EVENTS.items():
            jobs = CounterMetricFamily(f"tidework_jobs_{event}", text, labels=["queue", "task"])
            # A copy: the supervisor's loop goes on counting.
            for labels, count in list(numbers.jobs[event].items()):
                jobs.add_metric(labels, count)
            yield jobs
        yield self._run_seconds()
        slots = GaugeMetricFamily("tidework_worker_slots", "Slots", labels=["state"])
        busy = numbers.busy()
        slots.add_metric(["busy"], busy)
        slots.add_metric(["idle"], numbers.slots - busy)
        yield slots
        yield GaugeMetricFamily(
            "tidework_worker_last_heartbeat_timestamp_seconds",
            "When the worker last reported to Redis",
            value=numbers.last_heartbeat_at,
        )
        yield _counter("tidework_documents_rejected", "No jobs", "queue", numbers.rejected)
        yield _counter("tidework_redis_errors", "Failed requests", "error", numbers.redis_errors)
        info = GaugeMetricFamily("tidework_build_info", "Always 1", labels=["version"])
        info.add_metric([numbers.version], 1)
        yield info

    def _run_seconds(self) -> Metric:
        from prometheus_client.metrics_core import HistogramMetricFamily

        family = HistogramMetricFamily(
            "tidework_job_run_seconds", "Service time of attempts", labels=["queue", "task"]
        )
        for labels, found in list(self._numbers.run_seconds.items()):
            buckets: list[tuple[str, float]] = []
            below = 0
            for bound, count in zip([*map(str, RUN_SECONDS), "+Inf"], found.counts, strict=True):
                below += count
                buckets.append((bound, below))
            family.add_metric(labels, buckets, sum_value=found.total)
        return family


def _counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily

    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in list(counts.items()):
        family.add_metric([value], count)
    return family


class MetricsPage:
    """The text of /metrics. prometheus-client is imported at the first request."""

    def __init__(self, numbers: WorkerNumbers) -> None:
        self._numbers = numbers
        self._registry: CollectorRegistry | None = None

    def text(self) -> bytes:
        """In the text format that CONTENT_TYPE names."""
        from prometheus_client import CollectorRegistry, generate_latest

        if self._registry is None:
            self._registry = CollectorRegistry()
            self._registry.register(_Collector(self._numbers))
        return generate_latest(self._registry)


@dataclass(frozen=True, slots=True)
class QueueNumbers:
    """One queue at one moment, for the exporter of the HTTP API.

    jobs:        state -> number; counters: transition -> sum since the queue exists
    oldest_wait: seconds; workers: living or stale -> number
    replicas:    asked for and wanted by the autoscaler; empty where there is none
    """

    namespace: str
    queue: str
    jobs: Mapping[str, int]
    inbox: int
    oldest_wait: float
    is_paused: bool
    workers: Mapping[str, int]
    replicas: Mapping[str, int]
    counters: Mapping[str, int]


class _QueuesCollector:
    """Families of all queues; docs/metrics.md lists them."""

    def __init__(self, queues: Sequence[QueueNumbers]) -> None:
        self._queues = queues

    def collect(self) -> Iterable[Metric]:
        """Called by the registry, once."""
        from prometheus_client.metrics_core import CounterMetricFamily

        yield self._gauges("jobs", "Jobs by state", "state", lambda q: q.jobs)
        yield self._gauges("workers", "Workers that were seen lately", "state", lambda q: q.workers)
        yield self._gauges("replicas", "Of the autoscaler", "kind", lambda q: q.replicas)
        yield self._gauge("inbox_documents", "Documents not validated yet", lambda q: q.inbox)
        yield self._gauge("oldest_wait_seconds", "Wait of the oldest job", lambda q: q.oldest_wait)
        yield self._gauge("paused", "1 while the queue is paused", lambda q: q.is_paused)
        labels = ["namespace", "queue", "transition"]
        sums = CounterMetricFamily(
            "tidework_queue_transitions", "Transitions of jobs", labels=labels
        )
        for queue in self._queues:
            for name, count in queue.counters.items():
                sums.add_metric([queue.namespace, queue.queue, name], count)
        yield sums

    def _gauge(self, name: str, text: str, value: Callable[[QueueNumbers], float]) -> Metric:
        from prometheus_client.metrics_core import GaugeMetricFamily

        found = GaugeMetricFamily(f"tidework_queue_{name}", text, labels=["namespace", "queue"])
        for queue in self._queues:
            found.add_metric([queue.namespace, queue.queue], value(queue))
        return found

    def _gauges(
        self, name: str, text: str, label: str, values: Callable[[QueueNumbers], Mapping[str, int]]
    ) -> Metric:
        from prometheus_client.metrics_core import GaugeMetricFamily

        labels = ["namespace", "queue", label]
        found = GaugeMetricFamily(f"tidework_queue_{name}", text, labels=labels)
        for queue in self._queues:
            for value, count in values(queue).items():
                found.add_metric([queue.namespace, queue.queue, value], count)
        return found


def queues_page(queues: Sequence[QueueNumbers]) -> bytes:
    """Queues in the text format that CONTENT_TYPE names."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_QueuesCollector(queues))
    return generate_latest(registry)
