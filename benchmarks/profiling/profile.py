"""``--profile tidework``: a drain of no-ops on two slots, sampled, as tables on standard output."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.pace import PACE, speed
from benchmarks.processes import ProcessStat, cpu_of
from benchmarks.server import Reading
from benchmarks.session import Session, System

FOLDER = Path(__file__).parent
SINGLES = 3_000
WARM = 500
TOP = 25
Window = tuple[float, float]
Sample = tuple[float, Sequence[str], int]


@dataclass(frozen=True, slots=True)
class Part:
    """The samples of one role, and the CPU time per job to be divided among them."""

    role: str
    cpu_us: float
    kernel_us: float
    samples: Sequence[Sample]


def print_profile(system: System, server: str, count: int) -> None:
    """Run and print."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"BENCHMARK_PROFILE": folder, "PYTHONPATH": str(FOLDER)}
        session = Session(system, server, **variables)
        with session:
            parts, redis = _measure(session, Path(folder), count)
    for part in parts:
        print(describe(part))
    print(redis)


def _measure(session: Session, folder: Path, count: int) -> tuple[list[Part], str]:
    session.enqueue("noop", WARM)
    empty = session.server.reading()
    began = time.monotonic()
    _, bulk = session.enqueue("noop", count)
    bulk_window = (began, time.monotonic())
    session.enqueue("noop", WARM, bulk=False)
    began = time.monotonic()
    _, single = session.enqueue("noop", SINGLES, bulk=False)
    single_window = (began, time.monotonic())
    waiting = session.server.reading()
    worker = session.start_worker(2)
    session.wait_for(count // 10)
    began, place, before = time.monotonic(), len(session.ledger), worker.tree()
    middle = session.server.reading()
    session.wait_for(count + SINGLES + 2 * WARM, 300)
    window = (began, time.monotonic())
    after, done = worker.tree(), len(session.ledger) - place
    share = speed(PACE.since(began), PACE.best())
    print(f"CPU times as measured, while the workers ran at {share:.0%} of the best pace\n")
    end = session.server.reading()
    worker.terminate()
    session.workers.clear()
    session.end_producer()
    noted = read_samples(folder)
    spent = divide(before, after, done)
    parts = [Part(role, *spent[role], within(noted[role], window)) for role in spent]
    for role, cost, where in (
        ("producer, bulk", bulk["cpu"] / count, bulk_window),
        ("producer, one by one", single["cpu"] / SINGLES, single_window),
    ):
        parts.append(Part(role, cost * 1e6, 0.0, within(noted["producer"], where)))
    redis = describe_redis("enqueue", empty, waiting, count + SINGLES + WARM)
    return parts, redis + "\n" + describe_redis("work", middle, end, done)


def divide(
    before: Sequence[ProcessStat], after: Sequence[ProcessStat], jobs: int
) -> dict[str, tuple[float, float]]:
    """Role -> CPU microseconds per job, and those of them in the kernel.

    The root process is the supervisor; all others, with those that were replaced meanwhile, are
    the children (and the template, which costs next to nothing).
    """
    cpu = cpu_of(after) - cpu_of(before)
    kernel = kernel_of(after) - kernel_of(before)
    own_cpu = after[0].cpu - before[0].cpu
    own_kernel = after[0].kernel - before[0].kernel
    return {
        "supervisor": (own_cpu / jobs * 1e6, own_kernel / jobs * 1e6),
        "child": ((cpu - own_cpu) / jobs * 1e6, (kernel - own_kernel) / jobs * 1e6),
    }


def kernel_of(tree: Iterable[ProcessStat]) -> float:
    """CPU seconds of a tree in the kernel."""
    return sum(stat.kernel + stat.reaped_kernel for stat in tree)


def read_samples(folder: Path) -> dict[str, list[Sample]]:
    """Role -> samples of all its processes."""
    found: dict[str, list[Sample]] = {"supervisor": [], "template": [], "child": [], "producer": []}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        found[role_of(document)].extend(
            (at, tuple(stack), line) for at, stack, line in document["samples"]
        )
    return found


def role_of(document: Mapping[str, Any]) -> str:
    """Which of Tidework's processes it was: the template is a fork of the supervisor, unless it
    was started afresh, and children are forks of the template."""
    command = " ".join(document["command"])
    if "produce.py" in command:
        return "producer"
    generation = document["forks"] + ("tidework.worker.child.template" in command)
    return ("supervisor", "template", "child")[min(2, generation)]


def within(samples: Iterable[Sample], window: Window) -> list[Sample]:
    """Those of a time."""
    return [sample for sample in samples if window[0] <= sample[0] <= window[1]]


def describe(part: Part) -> str:
    """Two tables: functions by their own time, and by that of all that they call."""
    total = max(1, len(part.samples))
    own = Counter(f"{stack[0]} line {line}" for _, stack, line in part.samples)
    functions = Counter(stack[0] for _, stack, _ in part.samples)
    inclusive = Counter(name for _, stack, _ in part.samples for name in set(stack))
    text = f"## {part.role}: {part.cpu_us:.1f} us per job"
    text += f", {part.kernel_us:.1f} of them in the kernel" if part.kernel_us else ""
    text += f" ({len(part.samples)} samples)\n\n"
    for heading, counts in (
        ("own time, by function", functions),
        ("own time, by line", own),
        ("with what it calls", inclusive),
    ):
        rows = [
            [name, f"{part.cpu_us * found / total:.1f}", f"{100 * found / total:.0f}"]
            for name, found in counts.most_common(TOP)
        ]
        text += report.table([heading, "us per job", "%"], rows) + "\n"
    return text


def describe_redis(phase: str, before: Reading, after: Reading, jobs: int) -> str:
    """Redis' time by command; what scripts call is in theirs as well."""
    microseconds = Counter(after.microseconds)
    microseconds.subtract(before.microseconds)
    calls = Counter(after.calls)
    calls.subtract(before.calls)
    rows = [
        [name, f"{spent / jobs:.2f}", f"{calls[name] / jobs:.3f}"]
        for name, spent in microseconds.most_common(TOP)
        if spent > 0
    ]
    cpu = (after.cpu - before.cpu) / jobs * 1e6
    heading = f"## Redis, {phase}: {cpu:.1f} us of CPU per job\n\n"
    return heading + report.table(["command", "us per job", "calls per job"], rows)
