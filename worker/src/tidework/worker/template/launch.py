"""The template's process, as its supervisor holds it, and how it comes into being.

The first one is a fork of the worker itself, made before the worker does anything: what both
need is imported once, and lies in memory once. Later ones start afresh, since by then the worker
has threads and an event loop.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tidework.worker import stacks
from tidework.worker.child_config import ChildConfig

STANDARD = 2
"""Up to here descriptors are input, output and errors."""

logger = logging.getLogger(__name__)

Program = Callable[[Sequence[str]], int]
"""Of the template: takes its arguments (template.py), returns its exit code."""


@dataclass(slots=True, eq=False)
class TemplateProcess:
    """A template that runs, and was not reaped.

    control: our end of its socket; file: where it writes its stacks. Both are the owner's to close
    """

    pid: int
    control: socket.socket
    file: int
    _fresh: subprocess.Popen[bytes] | None = None

    def note_end(self, code: int) -> None:
        """It was reaped, by pid."""
        if self._fresh is not None:
            self._fresh.returncode = code


def start(config: ChildConfig) -> TemplateProcess:
    """A fresh one. Raises OSError."""
    file = stacks.open_file()
    with contextlib.ExitStack() as failed:
        failed.callback(os.close, file)
        ours, theirs = socket.socketpair()
        failed.enter_context(ours)
        command = [sys.executable, "-m", "tidework.worker.child.template"]
        command += _arguments(theirs, file, config)
        with theirs:
            # A session of its own: Ctrl-C on the terminal is for the supervisor alone.
            fresh = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(), file),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        failed.pop_all()
    return TemplateProcess(fresh.pid, ours, file, fresh)


def fork(config: ChildConfig, program: Program) -> TemplateProcess | None:
    """A fork of this process, which has to have nothing but its main thread, and no event loop.

    None where that is not done: macOS' own libraries do not bear it.
    """
    if sys.platform != "linux":
        return None
    ours, theirs = socket.socketpair()
    file = stacks.open_file()
    arguments = _arguments(theirs, file, config)
    # What is there is left alone by collections of either side, so that its pages stay shared.
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _become(program, arguments, keep={theirs.detach(), file})
    theirs.close()
    return TemplateProcess(pid, ours, file)


def _arguments(control: socket.socket, file: int, config: ChildConfig) -> list[str]:
    return [str(control.fileno()), str(file), str(os.getpid()), config.to_json()]


def _become(program: Program, arguments: Sequence[str], keep: Collection[int]) -> NoReturn:
    """As a fresh process would be: a session, no input, no descriptors of the worker's."""
    code = 70
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
            if descriptor > STANDARD and descriptor not in keep:
                with contextlib.suppress(OSError):  # that of the listing
                    os.close(descriptor)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        code = program(["tidework.worker.child.template", *arguments])
    except BaseException:
        logger.exception("the template process failed", extra={"event": "template_failed"})
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
