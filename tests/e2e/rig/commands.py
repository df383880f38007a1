"""Programs run with a deadline, and one that fails shows what it said.

Each runs in a session of its own, so that what it started ends with it at the deadline or at
Ctrl-C. Only what starts a session itself stays: the Docker engine.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class CommandError(Exception):
    """A program that failed; `said` is its standard error, or its output if that is empty."""

    def __init__(self, command: Sequence[str], why: str, said: str) -> None:
        self.said = said.strip()
        super().__init__(f"`{shlex.join(command)}` {why}\n{self.said}".strip())


def say(text: str) -> None:
    """Tell progress."""
    print(f"e2e: {text}", file=sys.stderr, flush=True)


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    within: float,
    input: str | None = None,  # noqa: A002 - the word of subprocess.run
    folder: Path | None = None,
    progress: bool = False,
) -> str:
    """Run a program and return its standard output.

    `within` is in seconds; with `progress` its standard error is shown as it comes. Raises
    CommandError if it can't be started, exits other than 0, or takes longer.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if progress else subprocess.PIPE,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
            text=True,
        )
    except OSError as error:
        raise CommandError(command, f"did not start: {error}", "") from error
    with process:
        try:
            output, errors = process.communicate(input, timeout=within)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandError(command, f"took longer than {within:g} s", "") from error
            raise
    if process.returncode != 0:
        raise CommandError(command, f"exited {process.returncode}", errors or output)
    return output
