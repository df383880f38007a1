"""``python -m benchmarks``: measure, write everything as JSON meanwhile, print the tables."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.document import Document
from benchmarks.environments import environment_of
from benchmarks.pace import PACE
from benchmarks.run import Selection, run
from benchmarks.server import Server, find_binary
from benchmarks.session import Session, System
from benchmarks.stages import FULL_ONLY, OURS, OURS_ASYNC, WORKLOADS
from benchmarks.workloads import Plan
from benchmarks.workloads.work import calibrate

VARIANTS = {
    "celery-prefetch-1": ("celery", "prefetch-1"),
    OURS_ASYNC: (OURS, "async"),
}
OF_OURS = (OURS, OURS_ASYNC)
PEERS = (
    "taskiq",
    "dramatiq",
    "saq",
    "streaq",
    "docket",
    "arq",
    "celery",
    "celery-prefetch-1",
    "rq",
    "huey",
)


def read_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="3 rounds, long crashes, growth")
    parser.add_argument("--only", default="", help=f"of {','.join(WORKLOADS)}")
    parser.add_argument("--peers", help=f"of {','.join(PEERS)}; 'none' for Tidework alone")
    parser.add_argument("--rounds", type=int, help="of what varies: drains, work, wakes")
    parser.add_argument("--jobs", type=int, help="no-ops of a drain, the same for all systems")
    parser.add_argument("--server", choices=["redis", "valkey"], help="redis where it is there")
    parser.add_argument("--json", type=Path, help="write all to this file, after each result")
    parser.add_argument("--from", dest="source", type=Path, help="only print such a file's tables")
    parser.add_argument("--profile", choices=OF_OURS, help="where the time of a no-op goes")
    return parser.parse_args()


def find_systems(names: list[str]) -> tuple[list[System], dict[str, str]]:
    """The systems that can be run, and why others cannot."""
    found, missing = [], {}
    for name in names:
        peer, variant = VARIANTS.get(name, (name, ""))
        try:
            found.append(
                System(name, peer, environment_of(peer), (("BENCHMARK_VARIANT", variant),))
            )
        except (RuntimeError, OSError) as error:
            missing[name] = str(error)
    return found, missing


def describe(systems: list[System], server: str) -> dict[System, dict[str, Any]]:
    """What each says of itself."""
    found = {}
    for system in systems:
        with Session(system, server) as session:
            found[system] = session.order("describe", concurrency=10, processes=2)
    return found


def select(arguments: argparse.Namespace, server: str) -> tuple[Selection, dict[str, str]]:
    """What is to be run. Exits for an unknown name."""
    peers = list(PEERS)
    if arguments.peers is not None:
        peers = [] if arguments.peers == "none" else arguments.peers.split(",")
    workloads = [w for w in WORKLOADS if arguments.full or w not in FULL_ONLY]
    if arguments.only:
        workloads = arguments.only.split(",")
    unknown = sorted({*peers} - {*PEERS} | {*workloads} - {*WORKLOADS})
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; see --help")
    systems, missing = find_systems([*OF_OURS, *peers])
    plan = Plan(
        server=server,
        jobs=arguments.jobs,
        idle_s=20.0 if arguments.full else 8.0,
        silences=3 if arguments.full else 1,
        crash_s=420.0 if arguments.full else 30.0,
        full=arguments.full,
        rounds_of_5_ms=calibrate(),
    )
    rounds = arguments.rounds or (3 if arguments.full else 1)
    return Selection(describe(systems, server), workloads, rounds, plan), missing


def main() -> None:
    """Run and report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with us
    arguments = read_arguments()
    if arguments.source:
        print(_read(arguments.source).text())
        return
    server = arguments.server or _usual_server()
    PACE.start()
    if arguments.profile:
        from benchmarks.profiling.profile import print_profile

        print_profile(find_systems([arguments.profile])[0][0], server, arguments.jobs or 40_000)
        return
    document = _measure(arguments, server)
    print(document.text())


def _measure(arguments: argparse.Namespace, server: str) -> Document:
    began, stat = time.monotonic(), machine.read_stat()
    facts: dict[str, Any] = machine.describe()
    with Server(server) as running:
        facts["server"] = running.version()
    selection, missing = select(arguments, server)
    described = {system.name: found for system, found in selection.systems.items()}
    document = Document(facts, described, missing, asdict(selection.plan), selection.rounds)

    def save() -> None:
        facts["minutes"] = round((time.monotonic() - began) / 60, 1)
        facts["stolen"] = f"{machine.steal_share(stat, machine.read_stat()):.1%}"
        document.best_pace = PACE.best()
        if arguments.json:
            document.save(arguments.json)

    try:
        save()  # a file that cannot be written is found out now
    except OSError as error:
        sys.exit(f"--json: cannot be written: {error}")
    for result in run(selection):
        document.results.append(result)
        save()
    document.complete = True
    save()
    return document


def _read(path: Path) -> Document:
    try:
        return Document.load(path)
    except (OSError, ValueError) as error:
        sys.exit(f"--from: {error}")


def _usual_server() -> str:
    try:
        find_binary("redis")
    except FileNotFoundError:
        return "valkey"
    return "redis"


if __name__ == "__main__":
    main()
