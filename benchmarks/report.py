"""Results into tables: the median over the rounds, a system per row."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.pace import at_full_speed
from benchmarks.run import Result

Summary = dict[str, dict[str, float]]


def summarize(results: Iterable[Result], best_pace: float) -> Summary:
    """system -> figure -> median over the rounds, at full speed."""
    values: dict[str, dict[str, list[float]]] = {}
    for result in results:
        figures = values.setdefault(result.system, {})
        for name, value in derived(at_full_speed(result.figures, best_pace)).items():
            figures.setdefault(name, []).append(value)
    return {
        system: {name: statistics.median(found) for name, found in figures.items()}
        for system, figures in values.items()
    }


def derived(figures: dict[str, float]) -> dict[str, float]:
    """Put the CPU jobs in relation to the bare processes of the same round."""
    if "bare.rate" in figures:
        figures["cpu.percent"] = 100 * figures["cpu.rate"] / figures["bare.rate"]
    return figures


@dataclass(frozen=True, slots=True)
class Column:
    """A figure with its heading; ``digits`` behind the point."""

    heading: str
    figure: str
    digits: int = 0


TABLES: dict[str, tuple[Column, ...]] = {
    "No-op drain (us of CPU per job)": (
        Column("2: jobs/s", "drain.2.rate"),
        Column("2: workers us", "drain.2.cpu_us"),
        Column("2: root process us", "drain.2.supervisor_us"),
        Column("2: Redis us", "drain.2.redis_us", 1),
        Column("speed %", "drain.2.speed"),
        Column("10: jobs/s", "drain.10.rate"),
        Column("10: workers us", "drain.10.cpu_us"),
        Column("10: root process us", "drain.10.supervisor_us"),
        Column("10: Redis us", "drain.10.redis_us", 1),
        Column("speed %", "drain.10.speed"),
        Column("requests/job: producer", "requests.producer", 3),
        Column("workers", "requests.worker", 2),
    ),
    "Enqueue (client) and what waits (server)": (
        Column("single: CPU us", "enqueue.single.cpu_us"),
        Column("jobs/s", "enqueue.single.rate"),
        Column("bulk: CPU us", "enqueue.bulk.cpu_us"),
        Column("jobs/s", "enqueue.bulk.rate"),
        Column("Redis us", "enqueue.bulk.redis_us", 1),
        Column("bytes/job, small", "memory.small"),
        Column("200-byte params", "memory.text"),
    ),
    "I/O of 50 ms at concurrency 10, CPU of 5 ms at 2": (
        Column("I/O: jobs/s of 200", "io.rate", 1),
        Column("CPU: jobs/s", "cpu.rate", 1),
        Column("speed %", "cpu.speed"),
        Column("% of two bare processes", "cpu.percent"),
        Column("% of slot time in jobs", "cpu.busy_percent", 1),
    ),
    "Enqueue to start when idle (ms), concurrency 10": (
        Column("p50", "wake.p50_ms", 2),
        Column("p99", "wake.p99_ms", 2),
        Column("samples", "wake.samples"),
        Column("after 5 s", "wake.silent_ms", 2),
        Column("worst", "wake.silent_worst_ms", 2),
    ),
    "Idle at concurrency 10": (
        Column("PSS MiB", "idle.pss_mib", 1),
        Column("processes", "idle.processes"),
        Column("CPU %", "idle.cpu_percent", 2),
        Column("Redis requests/s", "idle.requests", 2),
        Column("1 slot: PSS MiB", "idle-1.pss_mib", 1),
        Column("CPU %", "idle-1.cpu_percent", 2),
    ),
    "kill -9 of one of two workers (again after: the time watched, if not)": (
        Column("busy: held", "crash.busy.held"),
        Column("again after s", "crash.busy.again_s", 1),
        Column("stuck", "crash.busy.stuck"),
        Column("doubled", "crash.busy.doubled"),
        Column("idle: held", "crash.idle.held"),
        Column("again after s", "crash.idle.again_s", 1),
        Column("stuck", "crash.idle.stuck"),
        Column("doubled", "crash.idle.doubled"),
    ),
    "kill -9 of one of two workers with jobs of 2 ms ahead in it": (
        Column("fetched, not run", "crash.pipes.held"),
        Column("of these begun", "crash.pipes.begun"),
        Column("again after s", "crash.pipes.again_s", 1),
        Column("stuck", "crash.pipes.stuck"),
        Column("doubled", "crash.pipes.doubled"),
    ),
    "One of the async jobs of a process ends it (segmentation fault)": (
        Column("neighbours hit", "crash.neighbours.hit"),
        Column("again after s", "crash.neighbours.again_s", 1),
        Column("innocents dead", "crash.neighbours.dead"),
        Column("stuck", "crash.neighbours.stuck"),
        Column("doubled", "crash.neighbours.doubled"),
        Column("hit again", "crash.neighbours.hit_again"),
        Column("culprit: runs", "crash.neighbours.culprit_runs"),
        Column("dead", "crash.neighbours.culprit_dead"),
    ),
    "Growth (us per job)": (
        Column("1,000 wait: workers", "backlog.1k.cpu_us", 1),
        Column("Redis", "backlog.1k.redis_us", 1),
        Column("1,000,000 wait: workers", "backlog.1m.cpu_us", 1),
        Column("Redis", "backlog.1m.redis_us", 1),
        Column("1 queue: workers", "queues.1.cpu_us", 1),
        Column("Redis", "queues.1.redis_us", 1),
        Column("100 queues: workers", "queues.100.cpu_us", 1),
        Column("Redis", "queues.100.redis_us", 1),
    ),
}


def tables(summary: Summary, systems: Sequence[str]) -> str:
    """Markdown: every table of which something was measured."""
    parts = []
    for title, columns in TABLES.items():
        rows = [
            [system, *(cell(summary.get(system, {}), column) for column in columns)]
            for system in systems
            if any(column.figure in summary.get(system, {}) for column in columns)
        ]
        if rows:
            parts.append(f"### {title}\n\n" + table(["", *(c.heading for c in columns)], rows))
    return "\n".join(parts)


def cell(figures: Mapping[str, float], column: Column) -> str:
    """A figure as text; a dash where there is none."""
    value = figures.get(column.figure)
    return "-" if value is None else f"{value:,.{column.digits}f}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all but the first column are aligned to the right."""
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def settings(described: Mapping[str, Mapping[str, Any]], missing: Mapping[str, str]) -> str:
    """Versions, delivery and settings of each system, and why others are not there."""
    rows = []
    for system, found in described.items():
        versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
        rows.append([system, versions, found["delivery"], found["settings"], f"{found['jobs']:,}"])
    for system, reason in missing.items():
        rows.append([system, "not installed", "-", reason, "-"])
    headings = ["", "versions", "delivery", "settings", "jobs of a drain"]
    return table(headings, rows).replace("---:", "---")


def faults(results: Iterable[Result]) -> str:
    """What went wrong, a line each."""
    lines = [
        f"- {result.system}, round {result.round + 1}: {fault.splitlines()[0]}\n"
        for result in results
        for fault in result.faults
    ]
    return "".join(lines)
