"""The async child's loop over a real pipe: places, reports, permits, stops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.worker.pipes import Pipes
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


class ServedLoop(Pipes):
    """A LoopChild in a thread, and the supervisor's ends of its pipes."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = Attempts()
        self.child = LoopChild(self.theirs, self.permits_read, PLACES, self.attempts)  # type: ignore[arg-type]
        self.serve(self.child.serve)

    def send(self, *numbers: int, ahead: bool = True, body: bytes = b"{}") -> None:
        super().send(*numbers, ahead=ahead, body=body)

    def let_end(self, number: int) -> None:
        def end() -> None:
            self.attempts.gates.setdefault(number, asyncio.Event()).set()

        self.child._loop.call_soon_threadsafe(end)

    def started(self) -> int:
        found = self.report()
        assert isinstance(found, frames.Started)
        return found.number

    def ended(self) -> tuple[int, Outcome]:
        found = self.report()
        assert isinstance(found, frames.Ended)
        return found.number, found.outcome

    def close(self) -> None:
        super().close()
        for task in asyncio.all_tasks(self.child._loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.child._loop.close()


@pytest.fixture
def served() -> Iterator[ServedLoop]:
    found = ServedLoop()
    assert found.report() == frames.Ready()
    yield found
    found.close()


def test_jobs_run_at_once_up_to_the_places(served: ServedLoop) -> None:
    served.send(1, 2, 3, body=b"7")

    assert [served.started(), served.started()] == [1, 2]
    assert os.read(served.permits_read, 100) == frames.PERMIT.pack(3), "it can be taken back"
    os.write(served.permits_write, frames.PERMIT.pack(3))
    served.let_end(2)

    assert served.ended() == (2, Outcome.complete(b"7"))
    assert served.started() == 3


def test_a_job_whose_permit_was_taken_back_does_not_run(served: ServedLoop) -> None:
    served.send(1, 2, 3)
    assert [served.started(), served.started()] == [1, 2]
    os.read(served.permits_read, 100)
    served.send(4)

    served.let_end(1)

    assert served.ended()[0] == 1
    assert served.started() == 4


def test_a_start_is_told_before_the_first_step(served: ServedLoop) -> None:
    """An end in the first step comes with its start, or after it, and never before."""
    served.send(1, ahead=False, body=b"unknown")

    assert served.started() == 1
    assert served.ended() == (1, Outcome.release())


def test_a_stopped_job_is_reported_as_that_however_it_ended(served: ServedLoop) -> None:
    served.send(1, 2)
    assert [served.started(), served.started()] == [1, 2]

    served.pipe.sendall(frames.order_frame(frames.Stop(1)))

    assert served.report() == frames.Alive()
    assert served.ended() == (1, Outcome.cancelled())
    served.let_end(2)
    assert served.ended() == (2, Outcome.complete(b"{}"))


def test_a_stop_that_comes_with_its_job_does_not_get_lost(served: ServedLoop) -> None:
    job = frames.JobFrame(1, False, 0, 1, 1, 5.0, b"{}").encode()

    served.pipe.sendall(job + frames.order_frame(frames.Stop(1)))

    found = [served.report(), served.report()]
    assert {type(report) for report in found} == {frames.Alive, frames.Started}
    assert served.ended() == (1, Outcome.cancelled())


def test_what_a_job_says_comes_before_its_end(served: ServedLoop) -> None:
    served.send(1)
    assert served.started() == 1
    wait_until(lambda: 1 in served.attempts.jobs)

    served.attempts.jobs[1].note_progress(1, None, "")

    assert served.report() == frames.Said(1, b'[1,null,""]', b"")
    served.let_end(1)
    assert served.ended() == (1, Outcome.complete(b"{}"))


def test_a_cancel_waits_for_the_item_of_a_job_and_a_stop_does_not(served: ServedLoop) -> None:
    served.send(1)
    assert served.started() == 1
    wait_until(lambda: 1 in served.attempts.jobs)
    job = served.attempts.jobs[1]
    job.loops = 1

    served.pipe.sendall(frames.order_frame(frames.Release(1)))
    assert served.report() == frames.Alive()
    assert (job.release_requested, job.stopped) == (True, False)
    served.pipe.sendall(frames.order_frame(frames.Cancel(1)))
    assert served.report() == frames.Alive()
    assert (job.cancel_requested, job.interrupted) == (True, False)
    served.pipe.sendall(frames.order_frame(frames.Stop(1)))
    assert served.report() == frames.Alive()

    assert served.ended() == (1, Outcome.cancelled())


def test_a_stop_of_a_job_that_has_ended_does_nothing(served: ServedLoop) -> None:
    served.pipe.sendall(frames.order_frame(frames.Stop(9)))
    assert served.report() == frames.Alive()

    served.send(1)

    assert served.started() == 1


def test_a_ping_is_answered(served: ServedLoop) -> None:
    served.pipe.sendall(frames.ping_frame())

    assert served.report() == frames.Alive()


def test_what_the_pipe_does_not_take_is_sent_later(served: ServedLoop) -> None:
    big = b'"' + b"x" * 400_000 + b'"'
    served.send(1, 2, body=big)
    assert [served.started(), served.started()] == [1, 2]
    for number in (1, 2):
        served.let_end(number)
    served.pipe.sendall(frames.ping_frame())

    found = [served.report() for _ in range(3)]

    ends = {report.number for report in found if isinstance(report, frames.Ended)}
    assert ends == {1, 2}
    assert frames.Alive() in found
