"""The child's loop over a real pipe: starts, reports, permits, the end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest

from tidework.errors import SoftTimeout
from tidework.model.outcome import Outcome
from tidework.worker import frames
from tidework.worker.child.child import Child
from tidework.worker.child_config import ChildConfig


class Bench:
    """A Child in a thread, and the supervisor's ends of its pipes."""

    def __init__(self) -> None:
        self.pipe, theirs = socket.socketpair()
        self.pipe.settimeout(10)
        self.permits_read, self.permits_write = os.pipe()
        os.set_blocking(self.permits_read, False)
        self.ran: list[int] = []
        self.told: list[frames.JobOrder] = []
        self.was_told = threading.Event()
        self.attempts = threading.Event()
        self.gate = threading.Semaphore(0)
        self._buffer = frames.FrameBuffer()
        self._found: list[bytes] = []
        self._theirs = theirs
        self.worn: str | None = None
        self.child = Child(theirs, self.permits_read, self._attempt, self._tell, self._look)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        self.child.serve()

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

    def send(self, number: int, *, ahead: bool = False, body: bytes = b"{}") -> None:
        if ahead:
            os.write(self.permits_write, frames.PERMIT.pack(number))
        self.pipe.sendall(frames.JobFrame(number, ahead, 0, 1, 1, 5.0, body).encode())

    def report(self) -> frames.Report:
        while not self._found:
            self._found += self._buffer.feed(self.pipe.recv(65536))
        return frames.decode_report(self._found.pop(0))

    def close(self) -> None:
        self.pipe.close()
        self.gate.release(100)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._theirs.close()
        os.close(self.permits_read)
        os.close(self.permits_write)


@pytest.fixture
def bench() -> Iterator[Bench]:
    found = Bench()
    assert found.report() == frames.Ready()
    yield found
    found.close()


def started(report: frames.Report) -> int:
    assert isinstance(report, frames.Started)
    return report.number


def ended(report: frames.Report) -> int:
    assert isinstance(report, frames.Ended)
    return report.number


def test_a_job_is_reported_at_its_start_and_at_its_end(bench: Bench) -> None:
    bench.send(1, body=b'{"n": 1}')
    assert started(bench.report()) == 1

    bench.gate.release()

    report = bench.report()
    assert isinstance(report, frames.Ended)
    assert report.outcome == Outcome.complete(b'{"n": 1}')


def test_a_worn_child_says_so_before_the_end_of_its_job_and_begins_no_other(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1
    bench.send(2, ahead=True)
    bench.worn = "no room"
    bench.gate.release()

    assert bench.report() == frames.Worn("no room")
    assert ended(bench.report()) == 1
    bench.pipe.sendall(frames.ping_frame())
    assert bench.report() == frames.Alive()
    assert bench.ran == [1]
    assert os.read(bench.permits_read, 100) == frames.PERMIT.pack(2), "it can be taken back"


def test_a_ping_is_answered_when_nothing_is_left_to_begin_of_what_came_before(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1
    bench.send(2, ahead=True)
    bench.send(3, ahead=True)
    assert os.read(bench.permits_read, 4) == frames.PERMIT.pack(2), "as a job might do"
    bench.pipe.sendall(frames.ping_frame())
    bench.gate.release(2)

    assert ended(bench.report()) == 1
    assert started(bench.report()) == 3
    assert ended(bench.report()) == 3
    assert bench.report() == frames.Alive()


def test_the_end_of_one_and_the_start_of_the_next_come_in_one_write(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1
    bench.send(2, ahead=True)
    bench.gate.release()

    data = bench.pipe.recv(65536)

    reports = [frames.decode_report(found) for found in frames.FrameBuffer().feed(data)]
    assert [type(found) for found in reports] == [frames.Ended, frames.Started]


def test_the_end_is_told_when_nothing_follows(bench: Bench) -> None:
    bench.send(1)
    bench.gate.release()

    assert started(bench.report()) == 1
    assert ended(bench.report()) == 1


def test_a_job_whose_permit_was_taken_back_does_not_run(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1
    bench.send(2, ahead=True)
    bench.send(3, ahead=True)
    taken = os.read(bench.permits_read, 4096)
    assert taken == frames.PERMIT.pack(2) + frames.PERMIT.pack(3)
    bench.send(4, ahead=True)

    bench.gate.release(2)

    assert ended(bench.report()) == 1
    assert started(bench.report()) == 4
    assert ended(bench.report()) == 4
    assert bench.ran == [1, 4]


def test_a_job_begun_has_lost_its_permit(bench: Bench) -> None:
    bench.send(1)
    bench.send(2, ahead=True)
    bench.send(3, ahead=True)
    bench.gate.release()
    assert [started(bench.report()), ended(bench.report())] == [1, 1]
    assert started(bench.report()) == 2

    assert os.read(bench.permits_read, 4096) == frames.PERMIT.pack(3)


def test_a_job_in_pieces_and_many_at_once(bench: Bench) -> None:
    bench.gate.release(100)
    big = b'"' + b"x" * 300_000 + b'"'
    bench.send(1, body=big)
    for number in range(2, 20):
        bench.send(number, ahead=True)

    ends: list[int] = []
    while len(ends) < 19:
        report = bench.report()
        if isinstance(report, frames.Ended):
            ends.append(report.number)
    assert ends == list(range(1, 20))


def test_a_closed_pipe_ends_the_child(bench: Bench) -> None:
    bench.pipe.shutdown(socket.SHUT_WR)

    bench._thread.join(10)

    assert not bench._thread.is_alive()


def test_the_config_survives_the_command_line() -> None:
    config = ChildConfig("shop:app", "w", "ns", ("a", "b"), False, "json", "debug")

    assert ChildConfig.from_json(config.to_json()) == config
    assert [str(queue) for queue in config.queue_names()] == ["ns/a", "ns/b"]


def test_an_order_is_read_while_its_job_runs(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1
    assert bench.attempts.wait(10)
    bench.send(2, ahead=True)
    bench.pipe.sendall(frames.order_frame(frames.HandBack(1)))

    bench.child.on_told(0, None)

    assert bench.told == [frames.HandBack(1)]
    bench.gate.release(2)
    assert [ended(bench.report()), started(bench.report()), ended(bench.report())] == [1, 2, 2]


def test_a_soft_timeout_in_the_moment_of_an_order_leaves_no_signal_blocked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = signal.pthread_sigmask

    def mask_and_strike(how: int, numbers: Iterable[int]) -> object:
        before = mask(how, numbers)
        if how == signal.SIG_BLOCK:
            raise SoftTimeout(1.0)  # handlers of what has struck run at the end of the call
        return before

    bench.send(1)
    assert started(bench.report()) == 1
    assert bench.attempts.wait(10)
    blocked = mask(signal.SIG_BLOCK, [])
    with monkeypatch.context() as struck:
        struck.setattr(signal, "pthread_sigmask", mask_and_strike)
        with pytest.raises(SoftTimeout):
            bench.child.on_told(0, None)

    assert mask(signal.SIG_BLOCK, []) == blocked
    bench.pipe.sendall(frames.order_frame(frames.Cancel(1)))
    bench.child.on_told(0, None)
    assert bench.told == [frames.Cancel(1)]


def test_an_order_that_comes_with_its_job_is_told(bench: Bench) -> None:
    job = frames.JobFrame(1, False, 0, 1, 1, 5.0, b"{}").encode()
    bench.pipe.sendall(job + frames.order_frame(frames.Cancel(1)))

    assert started(bench.report()) == 1

    assert bench.told == [frames.Cancel(1)]


def test_an_order_that_comes_between_two_jobs_is_read_when_the_second_begins(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1
    assert bench.attempts.wait(10)
    bench.send(2, ahead=True)
    bench.child.on_told(0, None)  # job 2 lies in the child
    written = bench.child._report

    def tell_first() -> None:
        bench.pipe.sendall(frames.order_frame(frames.Cancel(2)))
        bench.child.on_told(0, None)
        written()

    bench.child._report = tell_first  # type: ignore[method-assign]
    bench.gate.release()
    assert [ended(bench.report()), started(bench.report())] == [1, 2]

    assert bench.was_told.wait(10), "it is told while it runs"
    assert bench.told == [frames.Cancel(2)]


def test_the_signal_without_a_job_reads_nothing_out_of_turn(bench: Bench) -> None:
    bench.child.on_told(0, None)
    bench.send(1)

    assert started(bench.report()) == 1


def test_what_a_job_says_comes_before_its_end(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1

    assert bench.child.say(1, b'[1,null,""]', b"", False)
    assert bench.report() == frames.Said(1, b'[1,null,""]', b"")
    assert bench.child.say(1, b"", b'{"":7}', True)
    bench.gate.release()

    assert bench.report() == frames.Said(1, b"", b'{"":7}')
    assert ended(bench.report()) == 1


def test_a_supervisor_that_reads_nothing_holds_no_job_up(bench: Bench) -> None:
    bench.send(1)
    assert started(bench.report()) == 1

    took = 0
    while bench.child.say(1, b'[1,null,"%b"]' % (b"x" * 200), b"", False):
        took += 1

    assert took > 10
    for _ in range(took):
        assert isinstance(bench.report(), frames.Said), "each came whole"
