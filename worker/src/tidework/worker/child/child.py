"""The program of a slot's child process: read a job, run it, report.

It ends when the supervisor closes the pipe, with its parent (the template), or by a verdict.
A job that was sent ahead starts only with its permit, which the supervisor may have taken back.
An order about the job that runs comes with the signal TELL, at which the pipe is read.
The report of an end waits for the next start when that job is already here: one write for both.
Started fresh (``python -m tidework.worker.child.child``) where the template must not fork.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from tidework.errors import ConfigurationError
from tidework.model.outcome import Outcome
from tidework.worker import frames, process, stacks
from tidework.worker.child.execution import Execution
from tidework.worker.child.loop_child import LoopChild
from tidework.worker.child.permits import Permits
from tidework.worker.child.surroundings import Surroundings
from tidework.worker.child_config import ChildConfig
from tidework.worker.process import TELL

_CHUNK = 65536
_STRIKING = (signal.SIGALRM, TELL)

logger = logging.getLogger(__name__)


class Child:
    """Serves one pipe until it is closed.

    pipe:    the child's end of the socket pair
    permits: read end of the pipe of permits, non-blocking
    attempt: runs a job to its end
    tell:    takes orders about a job that runs, waits here or has ended; may raise what is meant
             for the one that runs
    look:    told after each job how long it ran and when it ended; why no other may follow, or None
    """

    def __init__(
        self,
        pipe: socket.socket,
        permits: int,
        attempt: Callable[[frames.JobFrame], Outcome],
        tell: Callable[[frames.JobOrder], None],
        look: Callable[[float, float], str | None] = lambda _ran, _now: None,
    ) -> None:
        self._pipe = pipe
        self._permits = Permits(permits)
        self._attempt = attempt
        self._tell = tell
        self._look = look
        self._worn = self._pinged = False
        self._runs = False
        self._unread = False
        self._buffer = frames.FrameBuffer()
        self._jobs: deque[frames.JobFrame] = deque()
        self._reports: list[bytes] = [frames.ready_frame()]
        self._pid = os.getpid()
        self._open = True

    def serve(self) -> None:
        """Run jobs until the supervisor closes the pipe."""
        while (job := self._next_job()) is not None:
            began = time.monotonic()
            self._reports.append(frames.started_frame(job.number, began))
            self._report()
            self._runs = True
            if self._unread:
                self._read_orders()
            outcome = self._attempt(job)
            self._runs = False
            if os.getpid() != self._pid:
                os._exit(0)  # the job forked and came back in both: only one of them is the child
            now = time.monotonic()
            if (why := self._look(now - began, now)) is not None:
                self._worn = True
                self._reports.append(frames.worn_frame(why))
            self._reports.append(frames.ended_frame(job.number, outcome, now - began))

    def on_told(self, _number: int, _frame: object) -> None:
        """TELL: an order has been written; the one who waits for jobs reads it anyway."""
        if self._runs and os.getpid() == self._pid:
            self._read_orders()
        else:
            self._unread = True  # the next job may lie here already, so that nobody reads before it

    def _read_orders(self) -> None:
        self._unread = False
        # Nothing may be raised, nor read, between what the pipe gave and what is made of it.
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _STRIKING)  # may raise what struck just now
            self._read(socket.MSG_DONTWAIT)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STRIKING)

    def say(self, number: int, progress: bytes, positions: bytes, last: bool) -> bool:  # noqa: FBT001
        """Of Execution: what the job says of itself. It never waits for the supervisor."""
        frame = frames.said_frame(number, progress, positions)
        if last:
            self._reports.append(frame)
            return True
        try:
            sent = self._pipe.send(frame, socket.MSG_DONTWAIT)
            if sent < len(frame):  # on Linux so small a frame goes whole or not at all
                self._pipe.sendall(frame[sent:])
        except OSError:
            return False
        return True

    def _next_job(self) -> frames.JobFrame | None:
        while self._open:
            while self._jobs and not self._worn:
                job = self._jobs.popleft()
                if not job.ahead or self._permits.take(job.number):
                    return job
            if not self._read(socket.MSG_DONTWAIT):
                if self._pinged:
                    self._pinged = False
                    self._reports.append(frames.alive_frame())
                self._report()
                self._read(0)
        return None

    def _read(self, flags: int) -> bool:
        """Take in what has arrived. False if there is nothing and ``flags`` forbid to wait."""
        try:
            data = self._pipe.recv(_CHUNK, flags)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self._open = False
            return True
        orders = [frames.decode_order(payload) for payload in self._buffer.feed(data)]
        self._jobs.extend(order for order in orders if isinstance(order, frames.JobFrame))
        for order in orders:
            if isinstance(order, frames.JobOrder):
                self._tell(order)
            elif isinstance(order, frames.Ping):
                self._pinged = True  # answered once nothing is left to begin of what came before
        return True

    def _report(self) -> None:
        if self._reports:
            reports = b"".join(self._reports)
            self._reports.clear()
            try:
                self._pipe.sendall(reports)
            except ConnectionError:
                self._open = False


def settle_in(parent: int) -> None:
    """Make this process a child that ends with its parent and adopts what its jobs leave."""
    os.setsid()
    process.die_with_parent(parent)
    process.become_subreaper()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    # A handler, not SIG_IGN: programs that a task starts inherit the latter.
    signal.signal(signal.SIGINT, _disregard)


def _disregard(_number: int, _frame: object) -> None:
    """Ctrl-C is the supervisor's to answer."""


def serve_and_exit(
    pipe: socket.socket, permits: int, file: int, places: int, execution: Execution
) -> NoReturn:
    """Serve until told to end. Exit handlers belong to the template and do not run here.

    file: where stacks are written; places: for async jobs, 0 = one job of any kind at a time
    """
    code = 70
    try:
        if places:
            again = partial(stacks.answer_signals, file)
            LoopChild(pipe, permits, places, execution, again).serve()
        else:
            _serve_alone(pipe, permits, file, execution)
        code = 0
    except BaseException:
        logger.exception("the child process failed", extra={"event": "child_failed"})
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 70
        os._exit(code)


def _serve_alone(pipe: socket.socket, permits: int, file: int, execution: Execution) -> None:
    def look(ran: float, now: float) -> str | None:
        return surroundings.look(ran, now, execution.entered)

    pipe.setblocking(True)
    child = Child(pipe, permits, execution.run, execution.tell, look)
    execution.say = child.say
    signal.signal(TELL, child.on_told)
    surroundings = Surroundings(pipe.fileno(), partial(stacks.answer_signals, file))
    child.serve()


def main(argv: Sequence[str]) -> NoReturn:
    """Entry of a fresh child: descriptors of pipe, permits and the file of stacks; places, the
    parent's pid, config."""
    from tidework.app_loading import load_app

    pipe = socket.socket(fileno=int(argv[1]))
    permits, file = int(argv[2]), int(argv[3])
    for descriptor in (pipe.fileno(), permits, file):
        os.set_inheritable(descriptor, False)
    places = int(argv[4])
    settle_in(int(argv[5]))
    stacks.answer_signals(file)
    config = ChildConfig.from_json(argv[6])
    config.configure_logs()
    try:
        app = load_app(config.app)
    except ConfigurationError as error:
        logger.error("%s", error, extra={"event": "child_failed"})  # noqa: TRY400 - the text says all
        sys.exit(2)
    serve_and_exit(pipe, permits, file, places, Execution(app.tasks, config.queue_names()))


if __name__ == "__main__":
    main(sys.argv)
