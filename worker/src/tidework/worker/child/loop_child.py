"""The program of the child that runs async jobs, several at once on its event loop.

A job that was sent ahead starts when a place is free, with its permit. The report of a start is
written before the job's first step, so that a job that ends the process is known to have begun.
A job is stopped by cancelling its asyncio task; how it ended then does not matter any more.
One that is at a checkpoint is cancelled, or released, at the end of its item.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass

from tidework.model.current import RunningJob
from tidework.model.outcome import Outcome
from tidework.worker import frames
from tidework.worker.child.execution import STOPPED, Execution
from tidework.worker.child.job_loop import run_until_stopped
from tidework.worker.child.permits import Permits
from tidework.worker.child.surroundings import Surroundings

_CHUNK = 262144
MOST_UNSENT = 1 << 20
"""Bytes of reports that wait; beyond it jobs say nothing of themselves."""


@dataclass(slots=True, eq=False)
class _Running:
    """``job``: None until its first step."""

    number: int
    began: float
    order: frames.JobOrder | None = None
    task: asyncio.Task[None] | None = None
    job: RunningJob | None = None

    @property
    def stopped(self) -> bool:
        """Was it told to end?"""
        return isinstance(self.order, frames.Stop | frames.Cancel)

    def interrupt(self) -> None:
        """End what it does."""
        assert self.task is not None
        self.task.cancel()

    def tell(self, order: frames.JobOrder) -> None:
        """What it is asked; before its first step it is only noted."""
        if not self.stopped:
            self.order = order
        if self.job is None:
            return
        if isinstance(order, frames.Release):
            self.job.release_requested = True
        elif isinstance(order, frames.Cancel):
            self.job.cancel()
        else:
            self.job.stop()


class LoopChild:
    """Serves one pipe until it is closed.

    places: jobs at once; execution: runs them; again: of Surroundings
    """

    def __init__(
        self,
        pipe: socket.socket,
        permits: int,
        places: int,
        execution: Execution,
        again: Callable[[], None] = lambda: None,
    ) -> None:
        self._pipe = pipe
        self._permits = Permits(permits)
        self._places = places
        self._execution = execution
        execution.say, execution.later = self.say, self.later
        self._buffer = frames.FrameBuffer()
        self._waiting: deque[frames.JobFrame] = deque()
        self._running: dict[int, _Running] = {}
        self._reports: list[bytes] = []
        self._unsent = b""
        self._told = False
        self._pid = os.getpid()
        self._context = copy_context()
        self._again = again
        self._ran = 0.0
        self._worn = False
        self._loop = asyncio.new_event_loop()

    def serve(self) -> None:
        """Run jobs until the supervisor closes the pipe."""
        asyncio.set_event_loop(self._loop)
        self._thread = threading.get_ident()
        self._pipe.setblocking(False)
        self._loop.add_reader(self._pipe, self._read)
        self._report(frames.ready_frame())
        self._surroundings = Surroundings(self._pipe.fileno(), self._again)
        run_until_stopped(self._loop)

    def _end(self) -> None:
        self._loop.stop()

    def _read(self) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # a job forked, and both go on: only one of them is the child
        try:
            data = self._pipe.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._end()
            return
        for payload in self._buffer.feed(data):
            self._obey(frames.decode_order(payload))
        self._fill()

    def _obey(self, order: frames.Order) -> None:
        if isinstance(order, frames.JobFrame):
            self._waiting.append(order)
        elif isinstance(order, frames.Ping):
            self._fill()  # nothing that came before is left, as far as there are places
            self._report(frames.alive_frame())
        else:
            self._report(frames.alive_frame())
            self._fill()  # it may not have been looked at yet
            if (found := self._running.get(order.number)) is not None:
                found.tell(order)

    def say(self, number: int, progress: bytes, positions: bytes, last: bool) -> bool:  # noqa: FBT001
        """Of Execution: what a job says of itself."""
        if len(self._unsent) > MOST_UNSENT and not last:
            return False
        frame = frames.said_frame(number, progress, positions)
        if threading.get_ident() == self._thread:
            self._report(frame)
        else:  # a thread that works for a job
            self._loop.call_soon_threadsafe(self._report, frame)
        return True

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            self._loop.call_later(seconds, function)
        else:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, function)

    def _fill(self) -> None:
        """Start what may start."""
        while self._waiting and len(self._running) < self._places:
            job = self._waiting.popleft()
            # Of a worn child's the supervisor takes those ahead back.
            if not job.ahead or (not self._worn and self._permits.take(job.number)):
                self._start(job)

    def _start(self, job: frames.JobFrame) -> None:
        running = self._running[job.number] = _Running(job.number, time.monotonic())
        self._report(frames.started_frame(job.number, running.began))
        # The report was scheduled first, hence it is written before the first step. The context
        # is not the present one: that may be of the job that has just ended.
        running.task = self._loop.create_task(self._run(running, job), context=self._context.copy())

    async def _run(self, running: _Running, job: frames.JobFrame) -> None:
        outcome = STOPPED if running.stopped else await self._attempt(running, job)
        if os.getpid() != self._pid:
            os._exit(0)  # as above
        if running.stopped:
            outcome = STOPPED
        del self._running[job.number]
        now = time.monotonic()
        self._ran += now - running.began
        if not self._running:
            self._look(now)
        self._report(frames.ended_frame(job.number, outcome, now - running.began))
        self._fill()

    def _look(self, now: float) -> None:
        """No job runs: put right what they left. While one does, it may be at work with that."""
        told = {"jobs": "those that ran on the event loop"}
        ran, self._ran = self._ran, 0.0
        worn = self._surroundings.look(ran, now, told)
        if worn is not None and not self._worn:
            self._worn = True
            self._report(frames.worn_frame(worn))

    async def _attempt(self, running: _Running, job: frames.JobFrame) -> Outcome:
        call = self._execution.prepare(job)
        if isinstance(call, Outcome):
            return call
        running.job = call.running
        call.running.interrupt = running.interrupt
        if running.order is not None:
            running.tell(running.order)
        return await self._execution.run_shared(call)

    def _report(self, report: bytes) -> None:
        """To be written in the next round of the loop, with what else comes until then."""
        self._reports.append(report)
        if not self._told:
            self._told = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._told = False
        data = self._unsent + b"".join(self._reports)
        self._reports.clear()
        try:
            sent = self._pipe.send(data)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            self._end()
            return
        if self._unsent and sent == len(data):
            self._loop.remove_writer(self._pipe)
        self._unsent = data[sent:]
        if self._unsent:
            self._loop.add_writer(self._pipe, self._write)
