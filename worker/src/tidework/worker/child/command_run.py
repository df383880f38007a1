"""Runs one command to its end: feeds it its document, reads what it writes, leaves nothing behind.

The command leads a session of its own. Input and output go on at the same time, whatever of the two
the command looks at first; not reading its input is no fault of it. When it has ended, what it left
in the background is killed, so that the slot is free. When this process is killed, its orphans fall
to the supervisor (orphans.py); when the supervisor is killed, this process ends them and itself.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, Self

from tidework.model.command import Command
from tidework.model.current import RunningJob
from tidework.model.outcome import RESULT_LIMIT, Outcome
from tidework.worker import process
from tidework.worker.child.command_end import (
    Attempts,
    CommandEnd,
    outcome_of,
    outcome_of_unstarted,
)
from tidework.worker.child.command_output import LINE_LIMIT, Allowance, OutputStream
from tidework.worker.child.leftovers import Leftovers

LINGER = 0.2
"""Seconds that output may take to come to its end when the command itself has ended: what it had
piped it into is then killed as well."""
_TICK = 1.0
_TICK_WITHOUT_PIDFD = 0.05
_CHUNK = 65536
_REST = 64

logger = logging.getLogger(__name__)


class Leader:
    """Ends a job's command on request: SIGTERM to its whole process group."""

    def __init__(self, running: RunningJob) -> None:
        self._running = running

    def lead(self, pid: int) -> None:
        """The command runs."""
        self._running.interrupt = partial(process.terminate_group, pid)
        if self._running.stopped:
            self._running.stop()

    def rest(self) -> None:
        """It has ended, and its pid may soon be another's."""
        self._running.over = True


def attempt_command(
    command: Command,
    variables: Mapping[str, str],
    document: bytes,
    attempts: Attempts,
    soft: float | None = None,
    leader: Leader | None = None,
) -> Outcome:
    """One attempt of a job whose task is a command. ``soft``, ``leader``: see run_command."""
    try:
        end = run_command(command, variables, document, soft, leader)
    except OSError as error:
        return outcome_of_unstarted(command, error, attempts)
    return outcome_of(end, attempts)


def run_command(
    command: Command,
    variables: Mapping[str, str],
    document: bytes,
    soft: float | None = None,
    leader: Leader | None = None,
) -> CommandEnd:
    """Run it and wait for its end.

    variables: its whole environment; document: what it may read on standard input;
    soft: seconds after which its process group gets SIGTERM; leader: who may send it before
    Raises OSError if it cannot be started.
    """
    leftovers = Leftovers()
    allowance = Allowance(command.max_output)
    out = OutputStream("stdout", logging.INFO, allowance, RESULT_LIMIT)
    err = OutputStream("stderr", logging.WARNING, allowance, LINE_LIMIT)
    with _tied(leftovers):
        started = _start(command, variables)
        leftovers.leader = started.pid
        try:
            with _Conversation(started, document, out, err) as conversation:
                if leader is not None:
                    leader.lead(started.pid)
                try:
                    was_told = conversation.wait_ended(leftovers, soft)
                finally:
                    if leader is not None:
                        leader.rest()
                code = _end(started, leftovers)
                conversation.read_rest()
        except BaseException:
            # Our own fault, such as too many open files: the command ends all the same.
            if started.returncode is None:
                _end(started, leftovers)
            raise
    tail, unkept = err.tail or out.tail, out.last_size if out.last_size > RESULT_LIMIT else 0
    return CommandEnd(code, out.last_line, tail, soft if was_told else None, unkept)


@contextlib.contextmanager
def _tied(leftovers: Leftovers) -> Iterator[None]:
    """Meanwhile the end of our parent, and SIGTERM, end what the command has started before us.

    A death signal of the command itself would reach it alone, and to set one it has to be forked
    from all of this process, which takes ten times as long as starting it without.
    """

    def end_both(_number: int, _frame: object) -> None:
        leftovers.leader = 0
        leftovers.kill()
        os._exit(1)

    before = signal.signal(signal.SIGTERM, end_both)
    try:
        with process.told_of_parents_death(signal.SIGTERM):
            yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _start(command: Command, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # of an earlier job: exit codes would be lost
    return subprocess.Popen(
        command.argv,
        bufsize=0,
        cwd=command.cwd or None,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _end(started: subprocess.Popen[bytes], leftovers: Leftovers) -> int:
    """Kill what is left of it, and reap all. Returns its exit code, negative for a signal."""
    process.kill_group(started.pid)
    try:
        if started.returncode is None:
            _, status = os.waitpid(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
    except ChildProcessError:  # the application reaps whatever ends, in a thread of its own
        started.returncode = -signal.SIGKILL
        raise
    finally:
        leftovers.leader = 0
        if count := leftovers.kill():
            logger.warning(
                "the command left processes behind: %d killed",
                count,
                extra={"event": "command_left_processes"},
            )
    return started.returncode


class _Conversation:
    """Both directions of a command's pipes, as far as we hold them."""

    def __init__(
        self,
        started: subprocess.Popen[bytes],
        document: bytes,
        out: OutputStream,
        err: OutputStream,
    ) -> None:
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stderr is not None
        self._started = started
        self._selector = selectors.DefaultSelector()
        self._pidfd = process.open_pidfd(started.pid)
        self._unsent = memoryview(document)
        self._input = started.stdin
        self._outputs = {started.stdout: out, started.stderr: err}

    def __enter__(self) -> Self:
        for pipe in self._outputs:
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, self._read)
        os.set_blocking(self._input.fileno(), False)
        self._selector.register(self._input, selectors.EVENT_WRITE, self._write)
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ, _look)
        return self

    def __exit__(self, *_: object) -> None:
        self._close(self._input)
        for pipe in self._outputs:
            self._close(pipe)
        self._selector.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        for stream in self._outputs.values():
            stream.close()  # the last, since it may log

    def wait_ended(self, leftovers: Leftovers, soft: float | None) -> bool:
        """Until it has ended and its output is at its end, or LINGER later. Did it get SIGTERM?"""
        told_at = math.inf if soft is None else time.monotonic() + soft
        was_told = False
        tick = _TICK if self._pidfd is not None else _TICK_WITHOUT_PIDFD
        reap_at = time.monotonic() + _TICK
        while not self._has_ended():
            self._turn(min(tick, max(told_at - time.monotonic(), 0.0)))
            if time.monotonic() >= told_at and not self._has_ended():
                was_told, told_at = True, math.inf
                process.terminate_group(self._started.pid)
            if time.monotonic() >= reap_at:
                leftovers.reap()
                reap_at = time.monotonic() + _TICK
        if self._pidfd is not None:
            self._selector.unregister(self._pidfd)
        self._close(self._input)
        until = time.monotonic() + LINGER
        while self._outputs and (left := until - time.monotonic()) > 0:
            self._turn(left)
        return was_told

    def read_rest(self) -> None:
        """What lies in the pipes, now that nobody is left to write more."""
        for pipe in list(self._outputs):
            for _ in range(_REST):
                if not self._read(pipe):
                    break

    def _has_ended(self) -> bool:
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._started.poll() is not None
        pid = self._started.pid
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _turn(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            key.data(key.fileobj)

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            sent = os.write(pipe.fileno(), self._unsent[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            sent = len(self._unsent)  # it does not want to know
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._close(pipe)

    def _read(self, pipe: IO[bytes]) -> bool:
        """False if there was nothing."""
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._outputs[pipe].feed(data)
        else:
            self._outputs.pop(pipe).close()
            self._close(pipe)
        return bool(data)

    def _close(self, pipe: IO[bytes]) -> None:
        if not pipe.closed:
            self._selector.unregister(pipe)
            pipe.close()


def _look(_pidfd: int) -> None:
    """It has ended, which is looked at next."""
