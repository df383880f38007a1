"""The soft timeout of a command: SIGTERM, and what the command makes of it."""

from __future__ import annotations

import os
import sys
import textwrap

from tidework.model.command import Command
from tidework.worker.child.command_end import CommandEnd
from tidework.worker.child.command_run import run_command


def run(*argv: str, soft: float) -> CommandEnd:
    return run_command(Command(argv), os.environ, b"{}\n", soft)


def sh(script: str, soft: float) -> CommandEnd:
    return run("sh", "-c", script, soft=soft)


def test_the_soft_timeout_is_sigterm_for_the_whole_group() -> None:
    end = sh("(trap 'echo child' TERM; sleep 60 & wait) & trap 'wait; exit 7' TERM; wait", soft=0.3)

    assert (end.code, end.last_line, end.soft) == (7, b"child", 0.3)


def test_a_command_that_disregards_the_soft_timeout_goes_on() -> None:
    code = """
        import signal, time
        signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
        time.sleep(1.5)
        print("done")
        """
    end = run(sys.executable, "-c", textwrap.dedent(code), soft=1.0)

    assert (end.code, end.last_line, end.soft) == (0, b"done", 1.0)


def test_a_command_that_ends_before_its_soft_timeout_was_not_told() -> None:
    assert sh("exit 3", soft=60.0) == CommandEnd(3, None, "")
