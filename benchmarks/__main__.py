"""``python -m benchmarks``: measure, print the tables, write everything as JSON."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.environments import environment_of
from benchmarks.pace import PACE
from benchmarks.run import Result, Selection, run
from benchmarks.server import Server, find_binary
from benchmarks.session import Session, System
from benchmarks.stages import FULL_ONLY, OURS, WORKLOADS
from benchmarks.workloads import Plan
from benchmarks.workloads.work import calibrate

VARIANTS = {
    "celery-prefetch-1": ("celery", "prefetch-1"),
    "tidework-async": (OURS, "async"),
}
OF_OURS = (OURS, "tidework-async")
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
    parser.add_argument("--json", type=Path, help="write everything to this file")
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
        idle_s=20.0 if arguments.full else 10.0,
        silences=5 if arguments.full else 2,
        crash_s=420.0 if arguments.full else 30.0,
        rounds_of_5_ms=calibrate(),
    )
    rounds = arguments.rounds or (3 if arguments.full else 1)
    return Selection(describe(systems, server), workloads, rounds, plan), missing


def main() -> None:
    """Run and report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with us
    arguments = read_arguments()
    server = arguments.server or _usual_server()
    PACE.start()
    if arguments.profile:
        from benchmarks.profiling.profile import print_profile

        print_profile(find_systems([arguments.profile])[0][0], server, arguments.jobs or 40_000)
        return
    began, stat = time.monotonic(), machine.read_stat()
    facts: dict[str, Any] = machine.describe()
    with Server(server) as running:
        facts["server"] = running.version()
    selection, missing = select(arguments, server)
    results = list(run(selection))
    facts["minutes"] = round((time.monotonic() - began) / 60, 1)
    facts["stolen"] = f"{machine.steal_share(stat, machine.read_stat()):.1%}"
    described = {system.name: found for system, found in selection.systems.items()}
    _print(facts, selection.rounds, results, described, missing)
    if arguments.json:
        document = {
            "machine": facts,
            "best_pace": PACE.best(),
            "plan": asdict(selection.plan),
            "systems": described,
            "missing": missing,
            "results": [asdict(result) for result in results],
        }
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


def _print(
    facts: dict[str, Any],
    rounds: int,
    results: list[Result],
    described: Mapping[str, Mapping[str, Any]],
    missing: dict[str, str],
) -> None:
    print(", ".join(f"{name}: {value}" for name, value in facts.items()), f"rounds: {rounds}\n")
    summary = report.summarize(results, PACE.best())
    print(report.tables(summary, list(described)))
    print("### Systems\n")
    print(report.settings(described, missing))
    if found := report.faults(results):
        print(f"### Faults\n\n{found}")


def _usual_server() -> str:
    try:
        find_binary("redis")
    except FileNotFoundError:
        return "valkey"
    return "redis"


if __name__ == "__main__":
    main()
