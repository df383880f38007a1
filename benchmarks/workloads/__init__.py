"""The workloads, a file each. They return figures: name -> number, lower-case with dots."""

from __future__ import annotations

from dataclasses import dataclass

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how much.

    server:    redis or valkey
    jobs:      no-ops of a drain; None = about 3 s of the system's
    idle_s:    how long an idle worker is watched
    silences:  how often 5 s pass before one more job is enqueued
    crash_s:   how long a crash is watched
    full:      every system in every stage
    rounds_of_5_ms: of burn, on this machine
    """

    server: str = "redis"
    jobs: int | None = None
    idle_s: float = 20.0
    silences: int = 2
    crash_s: float = 30.0
    full: bool = False
    rounds_of_5_ms: int = 100_000
