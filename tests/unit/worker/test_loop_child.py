"""The async child's loop over a real pipe: places, reports, permits, stops."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tidework.model.current import CurrentJob, RunningJob
from tidework.model.outcome import Outcome
from tidework.worker import frames
from tidework.worker.child.loop_child import LoopChild

PLACES = 2


def _describe_nothing(_running: RunningJob) -> CurrentJob:
    raise NotImplementedError


class Attempts:
    """An Execution whose jobs end when the test says so."""

    def __init__(self) -> None:
        self.gates: dict[int, asyncio.Event] = {}
        self.jobs: dict[int, RunningJob] = {}
        self.say: Callable[..., bool]
        self.stubborn = False

    def prepare(self, frame: frames.JobFrame) -> Any:
        if frame.body == b"unknown":
            return Outcome.release()
        running = RunningJob(_describe_nothing, partial(self.say, frame.number))
        self.jobs[frame.number] = running
        return SimpleNamespace(frame=frame, running=running)

    async def run_shared(self, call: Any) -> Outcome:
        frame = call.frame
        gate = self.gates.setdefault(frame.number, asyncio.Event())
        try:
            await gate.wait()
        except asyncio.CancelledError:
            if not self.stubborn:
                return Outcome.complete(b"late")
            await gate.wait()
        return Outcome.complete(frame.body)


class Bench:
    """A LoopChild in a thread, and the supervisor's ends of its pipes."""

    def __init__(self) -> None:
        self.pipe, self._theirs = socket.socketpair()
        self.pipe.settimeout(10)
        self.permits_read, self.permits_write = os.pipe()
        os.set_blocking(self.permits_read, False)
        self.attempts = Attempts()
        self.child = LoopChild(self._theirs, self.permits_read, PLACES, self.attempts)  # type: ignore[arg-type]
        self._buffer = frames.FrameBuffer()
        self._found: list[bytes] = []
        self._thread = threading.Thread(target=self.child.serve)
        self._thread.start()

    def send(self, *numbers: int, ahead: bool = True, body: bytes = b"{}") -> None:
        if ahead:
            os.write(self.permits_write, b"".join(map(frames.PERMIT.pack, numbers)))
        jobs = [frames.JobFrame(number, ahead, 0, 1, 1, 5.0, body).encode() for number in numbers]
        self.pipe.sendall(b"".join(jobs))

    def let_end(self, number: int) -> None:
        def end() -> None:
            self.attempts.gates.setdefault(number, asyncio.Event()).set()

        self.child._loop.call_soon_threadsafe(end)

    def report(self) -> frames.Report:
        while not self._found:
            self._found += self._buffer.feed(self.pipe.recv(65536))
        return frames.decode_report(self._found.pop(0))

    def started(self) -> int:
        found = self.report()
        assert isinstance(found, frames.Started)
        return found.number

    def ended(self) -> tuple[int, Outcome]:
        found = self.report()
        assert isinstance(found, frames.Ended)
        return found.number, found.outcome

    def close(self) -> None:
        self.pipe.close()
        self._thread.join(10)
        assert not self._thread.is_alive(), "it ends with its pipe"
        for task in asyncio.all_tasks(self.child._loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.child._loop.close()
        self._theirs.close()
        os.close(self.permits_read)
        os.close(self.permits_write)


def until(found: Callable[[], bool]) -> None:
    """Look for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def bench() -> Iterator[Bench]:
    found = Bench()
    assert found.report() == frames.Ready()
    yield found
    found.close()


def test_jobs_run_at_once_up_to_the_places(bench: Bench) -> None:
    bench.send(1, 2, 3, body=b"7")

    assert [bench.started(), bench.started()] == [1, 2]
    assert os.read(bench.permits_read, 100) == frames.PERMIT.pack(3), "it can be taken back"
    os.write(bench.permits_write, frames.PERMIT.pack(3))
    bench.let_end(2)

    assert bench.ended() == (2, Outcome.complete(b"7"))
    assert bench.started() == 3


def test_a_job_whose_permit_was_taken_back_does_not_run(bench: Bench) -> None:
    bench.send(1, 2, 3)
    assert [bench.started(), bench.started()] == [1, 2]
    os.read(bench.permits_read, 100)
    bench.send(4)

    bench.let_end(1)

    assert bench.ended()[0] == 1
    assert bench.started() == 4


def test_a_start_is_told_before_the_first_step(bench: Bench) -> None:
    """An end in the first step comes with its start, or after it, and never before."""
    bench.send(1, ahead=False, body=b"unknown")

    assert bench.started() == 1
    assert bench.ended() == (1, Outcome.release())


def test_a_stopped_job_is_reported_as_that_however_it_ended(bench: Bench) -> None:
    bench.send(1, 2)
    assert [bench.started(), bench.started()] == [1, 2]

    bench.pipe.sendall(frames.order_frame(frames.Stop(1)))

    assert bench.report() == frames.Alive()
    assert bench.ended() == (1, Outcome.cancelled())
    bench.let_end(2)
    assert bench.ended() == (2, Outcome.complete(b"{}"))


def test_a_stop_that_comes_with_its_job_does_not_get_lost(bench: Bench) -> None:
    job = frames.JobFrame(1, False, 0, 1, 1, 5.0, b"{}").encode()

    bench.pipe.sendall(job + frames.order_frame(frames.Stop(1)))

    found = [bench.report(), bench.report()]
    assert {type(report) for report in found} == {frames.Alive, frames.Started}
    assert bench.ended() == (1, Outcome.cancelled())


def test_what_a_job_says_comes_before_its_end(bench: Bench) -> None:
    bench.send(1)
    assert bench.started() == 1
    until(lambda: 1 in bench.attempts.jobs)

    bench.attempts.jobs[1].note_progress(1, None, "")

    assert bench.report() == frames.Said(1, b'[1,null,""]', b"")
    bench.let_end(1)
    assert bench.ended() == (1, Outcome.complete(b"{}"))


def test_a_cancel_waits_for_the_item_of_a_job_and_a_stop_does_not(bench: Bench) -> None:
    bench.send(1)
    assert bench.started() == 1
    until(lambda: 1 in bench.attempts.jobs)
    job = bench.attempts.jobs[1]
    job.loops = 1

    bench.pipe.sendall(frames.order_frame(frames.Release(1)))
    assert bench.report() == frames.Alive()
    assert (job.release_requested, job.stopped) == (True, False)
    bench.pipe.sendall(frames.order_frame(frames.Cancel(1)))
    assert bench.report() == frames.Alive()
    assert (job.cancel_requested, job.interrupted) == (True, False)
    bench.pipe.sendall(frames.order_frame(frames.Stop(1)))
    assert bench.report() == frames.Alive()

    assert bench.ended() == (1, Outcome.cancelled())


def test_a_stop_of_a_job_that_has_ended_does_nothing(bench: Bench) -> None:
    bench.pipe.sendall(frames.order_frame(frames.Stop(9)))
    assert bench.report() == frames.Alive()

    bench.send(1)

    assert bench.started() == 1


def test_a_ping_is_answered(bench: Bench) -> None:
    bench.pipe.sendall(frames.ping_frame())

    assert bench.report() == frames.Alive()


def test_what_the_pipe_does_not_take_is_sent_later(bench: Bench) -> None:
    big = b'"' + b"x" * 400_000 + b'"'
    bench.send(1, 2, body=big)
    assert [bench.started(), bench.started()] == [1, 2]
    for number in (1, 2):
        bench.let_end(number)
    bench.pipe.sendall(frames.ping_frame())

    found = [bench.report() for _ in range(3)]

    ends = {report.number for report in found if isinstance(report, frames.Ended)}
    assert ends == {1, 2}
    assert frames.Alive() in found
