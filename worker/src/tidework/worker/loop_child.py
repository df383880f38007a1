"""The program of the child that runs async jobs, several at once on its event loop.

A job that was sent ahead starts when a place is free, with its permit. The report of a start is
written before the job's first step, so that a job that ends the process is known to have begun.
A job is stopped by cancelling its asyncio task; how it ended then does not matter any more.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import deque
from contextvars import copy_context
from dataclasses import dataclass

from tidework.model.outcome import Outcome
from tidework.worker import frames
from tidework.worker.execution import Execution
from tidework.worker.job_loop import run_until_stopped
from tidework.worker.permits import Permits

_CHUNK = 262144
_STOPPED = Outcome.cancelled()


@dataclass(slots=True, eq=False)
class _Running:
    number: int
    began: float
    stepped: bool = False
    stopped: bool = False
    task: asyncio.Task[None] | None = None


class LoopChild:
    """Serves one pipe until it is closed.

    places: jobs at once; execution: runs them
    """

    def __init__(
        self, pipe: socket.socket, permits: int, places: int, execution: Execution
    ) -> None:
        self._pipe = pipe
        self._permits = Permits(permits)
        self._places = places
        self._execution = execution
        self._buffer = frames.FrameBuffer()
        self._waiting: deque[frames.JobFrame] = deque()
        self._running: dict[int, _Running] = {}
        self._reports: list[bytes] = []
        self._unsent = b""
        self._told = False
        self._pid = os.getpid()
        self._context = copy_context()
        self._loop = asyncio.new_event_loop()

    def serve(self) -> None:
        """Run jobs until the supervisor closes the pipe."""
        asyncio.set_event_loop(self._loop)
        self._pipe.setblocking(False)
        self._loop.add_reader(self._pipe, self._read)
        self._report(frames.ready_frame())
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
            self._report(frames.alive_frame())
        else:
            self._stop(order.number)

    def _stop(self, number: int) -> None:
        self._report(frames.alive_frame())
        self._fill()  # it may not have been looked at yet
        if (found := self._running.get(number)) is not None:
            found.stopped = True
            # One that was not stepped yet would be cancelled without a word of ours.
            if found.task is not None and found.stepped:
                found.task.cancel()

    def _fill(self) -> None:
        """Start what may start."""
        while self._waiting and len(self._running) < self._places:
            job = self._waiting.popleft()
            if not job.ahead or self._permits.take(job.number):
                self._start(job)

    def _start(self, job: frames.JobFrame) -> None:
        running = self._running[job.number] = _Running(job.number, time.monotonic())
        self._report(frames.started_frame(job.number, running.began))
        # The report was scheduled first, hence it is written before the first step. The context
        # is not the present one: that may be of the job that has just ended.
        running.task = self._loop.create_task(self._run(running, job), context=self._context.copy())

    async def _run(self, running: _Running, job: frames.JobFrame) -> None:
        running.stepped = True
        outcome = _STOPPED if running.stopped else await self._attempt(job)
        if os.getpid() != self._pid:
            os._exit(0)  # as above
        if running.stopped:
            outcome = _STOPPED
        del self._running[job.number]
        seconds = time.monotonic() - running.began
        self._report(frames.ended_frame(job.number, outcome, seconds))
        self._fill()

    async def _attempt(self, job: frames.JobFrame) -> Outcome:
        call = self._execution.prepare(job)
        return call if isinstance(call, Outcome) else await self._execution.run_shared(call)

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
