"""The supervisor's side of one child: its pipe, its permits, and the jobs that are in it.

``jobs`` are in the order in which the child meets them; only the first can have started.
A job sent ahead of its turn can be taken back as long as its permit lies in the pipe: whoever
reads the permit, the child or we, owns the job, so that it never runs after it was taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from tidework.worker import frames, process
from tidework.worker.held import HeldJob
from tidework.worker.verdicts import Verdict

_CHUNK = 262144

logger = logging.getLogger(__name__)


class ChildEvents(Protocol):
    """Who is told what a child reports."""

    def on_started(self, link: ChildLink, job: HeldJob) -> None:
        """It is about to call the task."""

    def on_ended(self, job: HeldJob, ended: frames.Ended) -> None:
        """An attempt is over; the job has left its child."""

    def on_reports(self, link: ChildLink) -> None:
        """All reports that had arrived were told."""


class ChildLink:
    """One child process.

    key:        names it to the template; slot: index of the slot that it serves
    done:       jobs that it ended; pss: bytes at the last look
    ordered_at, killed_at, retired_at: monotonic seconds
    """

    def __init__(self, key: int, slot: int, events: ChildEvents, ordered_at: float) -> None:
        self.key = key
        self.slot = slot
        self.ordered_at = ordered_at
        self.pid: int | None = None
        self.ready = False
        self.done = 0
        self.pss = 0
        self.jobs: deque[HeldJob] = deque()
        self.verdict: tuple[Verdict, HeldJob | None] | None = None
        self.killed_at: float | None = None
        self.retired_at: float | None = None
        self._events = events
        self._pidfd: int | None = None
        self._numbers = 0
        self._buffer = frames.FrameBuffer()
        self._unsent = bytearray()
        self._pipe, self._their_pipe = socket.socketpair()
        self._permits, self._permits_in = os.pipe()
        self._pipe.setblocking(False)
        os.set_blocking(self._permits, False)
        os.set_blocking(self._permits_in, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self.read)

    def descriptors(self) -> tuple[int, int]:
        """What the child needs: its end of the pipe, and where it reads permits."""
        return self._their_pipe.fileno(), self._permits

    def on_start(self, pid: int, pidfd: int | None) -> None:
        """The child exists."""
        self.pid = pid
        self._pidfd = pidfd
        self._their_pipe.close()
        if self.killed_at is not None:
            process.kill(pid, pidfd)

    def send(self, jobs: Sequence[HeldJob], now: float) -> None:
        """Put jobs into the pipe, in one write; all but the first in the child are ahead."""
        sent = []
        permits = []
        for job in jobs:
            self._numbers += 1
            job.number = self._numbers
            job.sent_at = now
            job.started_at = None
            ahead = bool(self.jobs)
            if ahead:
                permits.append(frames.PERMIT.pack(job.number))
            self.jobs.append(job)
            frame = frames.JobFrame(
                number=job.number,
                ahead=ahead,
                queue=job.source.index,
                attempt=job.claimed.attempt,
                max_attempts=job.max_attempts,
                timeout=job.timeout,
                body=job.claimed.body,
            )
            sent.append(frame.encode())
        if permits:
            os.write(self._permits_in, b"".join(permits))
        self._write(b"".join(sent))

    def take_back(self) -> list[HeldJob]:
        """Take the jobs out that are ahead of their turn and were not begun; in their order."""
        if len(self.jobs) < 2:
            return []
        try:
            permits = os.read(self._permits, 4096)
        except BlockingIOError:
            return []
        numbers = {number for (number,) in frames.PERMIT.iter_unpack(permits)}
        taken = [job for job in self.jobs if job.number in numbers]
        self.jobs = deque(job for job in self.jobs if job.number not in numbers)
        return taken

    def _write(self, data: bytes) -> None:
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._pipe.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # it is dying; its end will be reported
        if sent < len(data):
            self._unsent += data[sent:]
            self._loop.add_writer(self._pipe, self._write_rest)

    def _write_rest(self) -> None:
        try:
            sent = self._pipe.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        else:
            del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._pipe)

    def read(self) -> None:
        """Take in what the child has reported."""
        try:
            data = self._pipe.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        # Without a pipe it is of no use. Mostly it is about to end; if a task closed the pipe, not.
        if not data or not self._take_in(data):
            self._loop.remove_reader(self._pipe)
            if self.retired_at is None:
                self.kill(Verdict.BROKEN, None, self._loop.time())

    def read_last(self) -> None:
        """The child has ended: take in what it reported before."""
        self._loop.remove_reader(self._pipe)
        with contextlib.suppress(OSError):
            while (data := self._pipe.recv(_CHUNK)) and self._take_in(data):
                pass

    def _take_in(self, data: bytes) -> bool:
        try:
            for payload in self._buffer.feed(data):
                self._on_report(frames.decode_report(payload))
        except frames.FrameError as error:
            extra = {"slot": self.slot, "child": self.pid}
            logger.error("a child speaks nonsense: %s", error, extra=extra)  # noqa: TRY400
            return False
        self._events.on_reports(self)
        return True

    def _on_report(self, report: frames.Report) -> None:
        if isinstance(report, frames.Ready):
            self.ready = True
            return
        if not self.jobs or self.jobs[0].number != report.number:
            raise frames.FrameError(f"a report of job {report.number}, which is not its turn")
        if isinstance(report, frames.Started):
            self.jobs[0].started_at = report.at
            self._events.on_started(self, self.jobs[0])
        else:
            self.done += 1
            self._events.on_ended(self.jobs.popleft(), report)

    def kill(self, verdict: Verdict, job: HeldJob | None, now: float) -> None:
        """SIGKILL the child because of ``job``; the first verdict stands."""
        if self.killed_at is not None:
            return
        self.verdict = (verdict, job)
        self.killed_at = now
        if self.pid is not None:
            process.kill(self.pid, self._pidfd)

    def force(self) -> None:
        """SIGKILL without a verdict: it retired and does not go, or its parent is gone."""
        if self.pid is not None:
            process.kill(self.pid, self._pidfd)

    def retire(self, now: float) -> None:
        """Have the child end; only when no job is in it."""
        self.retired_at = now
        self._loop.remove_reader(self._pipe)
        with contextlib.suppress(OSError):
            self._pipe.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Give back every descriptor."""
        if self._pipe.fileno() >= 0:
            self._loop.remove_reader(self._pipe)
            self._loop.remove_writer(self._pipe)
            self._pipe.close()
            os.close(self._permits)
            os.close(self._permits_in)
        self._their_pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
