"""Runs the trial of an application (program.py) and waits for what it tells."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

LOAD_WAIT_S = 60.0
"""In which an application has to import."""
MOST_ANSWER = 64 * 1024 * 1024
"""Bytes: names and files of an application."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What to try out.

    folder: where workers of the application start; environment: theirs
    jobs:   task and params of each, which the application has to take
    """

    app: str
    folder: Path
    environment: Mapping[str, str]
    jobs: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class JobFault:
    """Why a job would not run. field: `task` or `params`"""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trial found.

    error:   why the application does not load, '' if it does
    is_certain: it would load nowhere; else something may only be missing here
    queues:  task -> the queue that it is declared for
    needs_slots: tasks that no event loop can run: plain functions and commands
    faults:  one entry for each job, None if it would run
    sources: files below the folder that make the application, resolved; None if it did not load
    """

    error: str = ""
    is_certain: bool = True
    queues: Mapping[str, str] = field(default_factory=dict)
    needs_slots: frozenset[str] = frozenset()
    faults: Sequence[JobFault | None] = ()
    sources: frozenset[str] | None = None


async def try_out(trial: Trial) -> Tried:
    """Load the application in a process of its own. That is killed if this is cancelled."""
    request = {
        "app": trial.app,
        "jobs": [{"task": task, "params": dict(params)} for task, params in trial.jobs],
    }
    # A file, since what the application leaves behind may keep a pipe open.
    with tempfile.TemporaryFile() as said:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tidework.trial.program",
                cwd=trial.folder,
                env=dict(trial.environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
                start_new_session=True,
                limit=MOST_ANSWER,
            )
        except OSError as error:
            return Tried(f"app {trial.app!r} cannot be loaded in {trial.folder}: {error}")
        answer = await _answer_of(process, json.dumps(request).encode() + b"\n")
        if answer is None:
            return Tried(
                f"app {trial.app!r} did not import within {LOAD_WAIT_S:g} s", is_certain=False
            )
        if not answer:
            last = _last_line(said)
            words = f"; its last output: {last}" if last else ""
            return Tried(f"app {trial.app!r} ended its process while it was imported{words}")
    return _read(json.loads(answer))


async def _answer_of(process: asyncio.subprocess.Process, request: bytes) -> bytes | None:
    """A line; empty if the process ended without one, None if it took too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)  # and left open: its end says that we are gone
        async with asyncio.timeout(LOAD_WAIT_S):
            answer = await process.stdout.readline()
            await process.wait()
            return answer
    except TimeoutError:
        return None
    finally:
        process.stdin.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


def _last_line(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - 10_000))
    return said.read().decode(errors="replace").strip().rpartition("\n")[2]


def _read(found: Mapping[str, Any]) -> Tried:
    if "error" in found:
        return Tried(found["error"], found["is_certain"])
    return Tried(
        queues=found["queues"],
        needs_slots=frozenset(found["needs_slots"]),
        faults=[None if fault is None else JobFault(**fault) for fault in found["faults"]],
        sources=frozenset(found["sources"]),
    )
