"""The supervisor's side of one child: its pipe, its permits, and the jobs that are in it.

``jobs`` are in the order in which the child meets them; only the first can have started, unless
the child has an event loop with places for several.
A job sent ahead of its turn can be taken back as long as its permit lies in the pipe: whoever
reads the permit, the child or we, owns the job, so that it never runs after it was taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Sequence
from typing import Protocol

from tidework.worker import frames, process
from tidework.worker.held import HeldJob, StopReason

_CHUNK = 262144

logger = logging.getLogger(__name__)


class ChildEvents(Protocol):
    """Who is told what a child reports."""

    def on_started(self, link: ChildLink, job: HeldJob) -> None:
        """It is about to call the task."""

    def on_said(self, link: ChildLink, job: HeldJob) -> None:
        """The job's code says how far it is."""

    def on_ended(self, link: ChildLink, job: HeldJob, ended: frames.Ended) -> None:
        """An attempt is over; the job has left its child."""

    def on_missing(self, link: ChildLink, jobs: Sequence[HeldJob]) -> None:
        """Jobs that were sent are not in the child, and have not begun."""

    def on_reports(self, link: ChildLink) -> None:
        """All reports that had arrived were told."""


class ChildLink:
    """One child process.

    key:        names it to the template; slot: index of the slot that it serves
    places:     for async jobs on its event loop, 0 = one job of any kind at a time
    solitary:   it serves one job, which was lost before and is put in before the child is ready
    jobs:       by number
    killed_for: the reason, and the job that it was about if it was one; why: more, in words
    done:       jobs that it ended; pss: bytes at the last look; unreaped: processes, then
    blocked:    its event loop did not answer when it was asked last
    slow:       jobs were taken back that it did not start in time; it has said nothing since
    spent:      a job was cancelled in it: it gets no more jobs
    outdated:   the application was loaded again since: it gets no more jobs
    worn:       why it gets no more jobs: what it reports, or what was seen of it; else ''
    failed:     jobs that failed at once, in a row
    ordered_at, killed_at, retired_at, heard_at, asked_at: monotonic seconds
    """

    def __init__(
        self,
        key: int,
        slot: int,
        events: ChildEvents,
        ordered_at: float,
        places: int = 0,
        *,
        solitary: bool = False,
    ) -> None:
        self.key = key
        self.slot = slot
        self.places = places
        self.solitary = solitary
        self.ordered_at = self.heard_at = ordered_at
        self.pid: int | None = None
        self.ready = False
        self.done = 0
        self.pss = 0
        self.unreaped = 0
        self.jobs: dict[int, HeldJob] = {}
        self.killed_for: tuple[StopReason, HeldJob | None] | None = None
        self.why = ""
        self.killed_at: float | None = None
        self.retired_at: float | None = None
        self.asked_at = 0.0
        self.blocked = False
        self.slow = False
        self.spent = False
        self.outdated = False
        self.worn = ""
        self.failed = 0
        self._asked_up_to = 0
        self._tell_again = False
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

    @property
    def first(self) -> HeldJob:
        """The job that the child meets first; there has to be one."""
        return next(iter(self.jobs.values()))

    @property
    def is_free(self) -> bool:
        """Does it run, with nothing in it?"""
        return self.pid is not None and self.killed_at is None and not self.jobs

    @property
    def has_served(self) -> bool:
        """May it be replaced by a new one? Else that would be replaced at once as well."""
        return self.outdated or self.done > 0

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
        """Put jobs into the pipe, in one write; all but the first in the child are ahead.

        A solitary child's first is, too: it may be taken back until the child has begun it.
        """
        sent = []
        permits = []
        for job in jobs:
            self._numbers += 1
            job.number = self._numbers
            job.sent_at = now
            job.started_at = None
            ahead = self.solitary or bool(self.jobs)
            if ahead:
                permits.append(frames.PERMIT.pack(job.number))
            self.jobs[job.number] = job
            frame = frames.JobFrame(
                number=job.number,
                ahead=ahead,
                queue=job.source.index,
                attempt=job.claimed.attempt,
                max_attempts=job.max_attempts,
                timeout=job.timeout,
                body=job.claimed.body,
                token=job.claimed.token,
                releases=job.claimed.releases,
            )
            sent.append(frame.encode())
        if permits:
            os.write(self._permits_in, b"".join(permits))
        self._write(b"".join(sent))

    def take_back(self) -> list[HeldJob]:
        """Take the jobs out that are ahead of their turn and were not begun; in their order."""
        if len(self.jobs) < 2 and not self.solitary and not self.worn:
            return []
        try:
            permits = os.read(self._permits, _CHUNK)
        except BlockingIOError:
            return []
        numbers = [number for (number,) in frames.PERMIT.iter_unpack(permits)]
        return [self.jobs.pop(number) for number in numbers if number in self.jobs]

    def tell(self, order: frames.JobOrder) -> None:
        """Tell a job in the child something. How it ends is reported."""
        self._write(frames.order_frame(order))
        if not self.places:
            # The order may be stuck behind jobs that the child takes in at the signal.
            self._tell_again = bool(self._unsent)
            self.send_signal(process.TELL)

    def ping(self) -> None:
        """Have the child say that it has begun what was sent before, as far as there are places."""
        self._asked_up_to = self._numbers
        self._write(frames.ping_frame())

    def ask_for(self, job: HeldJob) -> None:
        """Once: find out whether a job that should have begun is in the child at all."""
        if self._asked_up_to < job.number:
            self.ping()

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
            if self._tell_again:
                self._tell_again = False
                self.send_signal(process.TELL)

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
                self.kill(StopReason.BROKEN, None, self._loop.time())

    def read_last(self) -> None:
        """The child has ended: take in what it reported before."""
        self._loop.remove_reader(self._pipe)
        with contextlib.suppress(OSError):
            while (data := self._pipe.recv(_CHUNK)) and self._take_in(data):
                pass

    def _take_in(self, data: bytes) -> bool:
        self.heard_at = self._loop.time()
        try:
            for payload in self._buffer.feed(data):
                self._on_report(frames.decode_report(payload))
        except frames.FrameError as error:
            self._note_protocol_error(error)
            return False
        self._events.on_reports(self)
        return True

    def _note_protocol_error(self, error: frames.FrameError) -> None:
        extra = {"event": "child_protocol_error", "slot": self.slot, "child": self.pid}
        logger.error("protocol error from child process: %s", error, extra=extra)

    def _on_report(self, report: frames.Report) -> None:
        if isinstance(report, frames.Ready):
            self.ready = True
            for held in self.jobs.values():
                held.sent_at = self.heard_at  # it could not start before
            return
        if isinstance(report, frames.Alive):
            self._on_alive()
            return
        if isinstance(report, frames.Worn):
            self.worn = report.why
            return
        job = self.jobs.get(report.number)
        if isinstance(report, frames.Said):
            if job is not None:  # else what it left behind says so
                job.said += 1
                job.progress = report.progress or job.progress
                job.positions = report.positions or job.positions
                self._events.on_said(self, job)
            return
        if job is None or (not self.places and job is not self.first):
            raise frames.FrameError(f"a report of job {report.number}, which is not its turn")
        if isinstance(report, frames.Started):
            job.started_at = report.at
            self._events.on_started(self, job)
        else:
            self.done += 1
            del self.jobs[report.number]
            self._events.on_ended(self, job, report)

    def _on_alive(self) -> None:
        jobs = list(self.jobs.values())
        started = sum(1 for job in jobs if job.started_at is not None)
        if started >= max(1, self.places):
            return
        # There was a place for them: a job has read them, or their permits, from our pipes.
        missing = [j for j in jobs if j.started_at is None and j.number <= self._asked_up_to]
        if missing:
            self.worn = "a job read what was sent to its process"
            for job in missing:
                del self.jobs[job.number]
            self._events.on_missing(self, missing)

    def kill(self, stop_reason: StopReason, job: HeldJob | None, now: float) -> None:
        """SIGKILL the child because of ``job``; the first reason stands."""
        if self.killed_at is not None:
            return
        self.killed_for = (stop_reason, job)
        self.killed_at = now
        if self.pid is not None:
            process.kill(self.pid, self._pidfd)

    def send_signal(self, number: signal.Signals) -> None:
        """Send the child a signal; it has to be ready for it."""
        if self.pid is not None:
            process.send_signal(self.pid, self._pidfd, number)

    def force(self) -> None:
        """SIGKILL that nobody is told of: it retired and does not go, or its parent is gone."""
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
