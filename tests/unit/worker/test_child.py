"""The child's loop over a real pipe: starts, reports, permits, the end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest

from tests.unit.worker.pipes import Pipes
from tidework.errors import SoftTimeout
from tidework.model.outcome import Outcome
from tidework.worker import frames
from tidework.worker.child.child import Child
from tidework.worker.child_config import ChildConfig


class ServedChild(Pipes):
    """A Child in a thread, and the supervisor's ends of its pipes."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[int] = []
        self.told: list[frames.JobOrder] = []
        self.was_told = threading.Event()
        self.attempts = threading.Event()
        self.gate = threading.Semaphore(0)
        self.worn: str | None = None
        self.child = Child(self.theirs, self.permits_read, self._attempt, self._tell, self._look)
        self.serve(self.child.serve)

    def _attempt(self, frame: frames.JobFrame) -> Outcome:
        self.attempts.set()
        self.gate.acquire(timeout=10)
        self.ran.append(frame.number)
        return Outcome.complete(frame.body)

    def _look(self, _ran: float, _now: float) -> str | None:
        return self.worn

    def _tell(self, order: frames.JobOrder) -> None:
        self.told.append(order)
        self.was_told.set()

    def close(self) -> None:
        self.pipe.close()  # first: what the job still says reaches nobody
        self.gate.release(100)
        super().close()


@pytest.fixture
def served() -> Iterator[ServedChild]:
    found = ServedChild()
    assert found.report() == frames.Ready()
    yield found
    found.close()


def started(report: frames.Report) -> int:
    assert isinstance(report, frames.Started)
    return report.number


def ended(report: frames.Report) -> int:
    assert isinstance(report, frames.Ended)
    return report.number


def test_a_job_is_reported_at_its_start_and_at_its_end(served: ServedChild) -> None:
    served.send(1, body=b'{"n": 1}')
    assert started(served.report()) == 1

    served.gate.release()

    report = served.report()
    assert isinstance(report, frames.Ended)
    assert report.outcome == Outcome.complete(b'{"n": 1}')


def test_a_worn_child_says_so_before_the_end_of_its_job_and_begins_no_other(
    served: ServedChild,
) -> None:
    served.send(1)
    assert started(served.report()) == 1
    served.send(2, ahead=True)
    served.worn = "no room"
    served.gate.release()

    assert served.report() == frames.Worn("no room")
    assert ended(served.report()) == 1
    served.pipe.sendall(frames.ping_frame())
    assert served.report() == frames.Alive()
    assert served.ran == [1]
    assert os.read(served.permits_read, 100) == frames.PERMIT.pack(2), "it can be taken back"


def test_a_ping_is_answered_when_nothing_is_left_to_begin_of_what_came_before(
    served: ServedChild,
) -> None:
    served.send(1)
    assert started(served.report()) == 1
    served.send(2, ahead=True)
    served.send(3, ahead=True)
    assert os.read(served.permits_read, 4) == frames.PERMIT.pack(2), "as a job might do"
    served.pipe.sendall(frames.ping_frame())
    served.gate.release(2)

    assert ended(served.report()) == 1
    assert started(served.report()) == 3
    assert ended(served.report()) == 3
    assert served.report() == frames.Alive()


def test_the_end_of_one_and_the_start_of_the_next_come_in_one_write(served: ServedChild) -> None:
    served.send(1)
    assert started(served.report()) == 1
    served.send(2, ahead=True)
    served.gate.release()

    data = served.pipe.recv(65536)

    reports = [frames.decode_report(found) for found in frames.FrameBuffer().feed(data)]
    assert [type(found) for found in reports] == [frames.Ended, frames.Started]


def test_the_end_is_told_when_nothing_follows(served: ServedChild) -> None:
    served.send(1)
    served.gate.release()

    assert started(served.report()) == 1
    assert ended(served.report()) == 1


def test_a_job_whose_permit_was_taken_back_does_not_run(served: ServedChild) -> None:
    served.send(1)
    assert started(served.report()) == 1
    served.send(2, ahead=True)
    served.send(3, ahead=True)
    taken = os.read(served.permits_read, 4096)
    assert taken == frames.PERMIT.pack(2) + frames.PERMIT.pack(3)
    served.send(4, ahead=True)

    served.gate.release(2)

    assert ended(served.report()) == 1
    assert started(served.report()) == 4
    assert ended(served.report()) == 4
    assert served.ran == [1, 4]


def test_a_job_begun_has_lost_its_permit(served: ServedChild) -> None:
    served.send(1)
    served.send(2, ahead=True)
    served.send(3, ahead=True)
    served.gate.release()
    assert [started(served.report()), ended(served.report())] == [1, 1]
    assert started(served.report()) == 2

    assert os.read(served.permits_read, 4096) == frames.PERMIT.pack(3)


def test_a_job_in_pieces_and_many_at_once(served: ServedChild) -> None:
    served.gate.release(100)
    big = b'"' + b"x" * 300_000 + b'"'
    served.send(1, body=big)
    for number in range(2, 20):
        served.send(number, ahead=True)

    ends: list[int] = []
    while len(ends) < 19:
        report = served.report()
        if isinstance(report, frames.Ended):
            ends.append(report.number)
    assert ends == list(range(1, 20))


def test_a_closed_pipe_ends_the_child(served: ServedChild) -> None:
    served.pipe.shutdown(socket.SHUT_WR)

    served._thread.join(10)

    assert not served._thread.is_alive()


def test_the_config_survives_the_command_line() -> None:
    config = ChildConfig("shop:app", "w", "ns", ("a", "b"), False, "json", "debug")

    assert ChildConfig.from_json(config.to_json()) == config
    assert [str(queue) for queue in config.queue_names()] == ["ns/a", "ns/b"]


def test_an_order_is_read_while_its_job_runs(served: ServedChild) -> None:
    served.send(1)
    assert started(served.report()) == 1
    assert served.attempts.wait(10)
    served.send(2, ahead=True)
    served.pipe.sendall(frames.order_frame(frames.Release(1)))

    served.child.on_told(0, None)

    assert served.told == [frames.Release(1)]
    served.gate.release(2)
    assert [ended(served.report()), started(served.report()), ended(served.report())] == [1, 2, 2]


def test_a_soft_timeout_in_the_moment_of_an_order_leaves_no_signal_blocked(
    served: ServedChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = signal.pthread_sigmask

    def mask_and_strike(how: int, numbers: Iterable[int]) -> object:
        before = mask(how, numbers)
        if how == signal.SIG_BLOCK:
            raise SoftTimeout(1.0)  # handlers of what has struck run at the end of the call
        return before

    served.send(1)
    assert started(served.report()) == 1
    assert served.attempts.wait(10)
    blocked = mask(signal.SIG_BLOCK, [])
    with monkeypatch.context() as struck:
        struck.setattr(signal, "pthread_sigmask", mask_and_strike)
        with pytest.raises(SoftTimeout):
            served.child.on_told(0, None)

    assert mask(signal.SIG_BLOCK, []) == blocked
    served.pipe.sendall(frames.order_frame(frames.Cancel(1)))
    served.child.on_told(0, None)
    assert served.told == [frames.Cancel(1)]


def test_an_order_that_comes_with_its_job_is_told(served: ServedChild) -> None:
    job = frames.JobFrame(1, False, 0, 1, 1, 5.0, b"{}").encode()
    served.pipe.sendall(job + frames.order_frame(frames.Cancel(1)))

    assert started(served.report()) == 1

    assert served.told == [frames.Cancel(1)]


def test_an_order_that_comes_between_two_jobs_is_read_when_the_second_begins(
    served: ServedChild,
) -> None:
    served.send(1)
    assert started(served.report()) == 1
    assert served.attempts.wait(10)
    served.send(2, ahead=True)
    served.child.on_told(0, None)  # job 2 lies in the child
    written = served.child._report

    def tell_first() -> None:
        served.pipe.sendall(frames.order_frame(frames.Cancel(2)))
        served.child.on_told(0, None)
        written()

    served.child._report = tell_first  # type: ignore[method-assign]
    served.gate.release()
    assert [ended(served.report()), started(served.report())] == [1, 2]

    assert served.was_told.wait(10), "it is told while it runs"
    assert served.told == [frames.Cancel(2)]


def test_the_signal_without_a_job_reads_nothing_out_of_turn(served: ServedChild) -> None:
    served.child.on_told(0, None)
    served.send(1)

    assert started(served.report()) == 1


def test_what_a_job_says_comes_before_its_end(served: ServedChild) -> None:
    served.send(1)
    assert started(served.report()) == 1

    assert served.child.say(1, b'[1,null,""]', b"", False)
    assert served.report() == frames.Said(1, b'[1,null,""]', b"")
    assert served.child.say(1, b"", b'{"":7}', True)
    served.gate.release()

    assert served.report() == frames.Said(1, b"", b'{"":7}')
    assert ended(served.report()) == 1


def test_a_supervisor_that_reads_nothing_holds_no_job_up(served: ServedChild) -> None:
    served.send(1)
    assert started(served.report()) == 1

    took = 0
    while served.child.say(1, b'[1,null,"%b"]' % (b"x" * 200), b"", False):
        took += 1

    assert took > 10
    for _ in range(took):
        assert isinstance(served.report(), frames.Said), "each came whole"
