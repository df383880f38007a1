"""The memory model and a real server side by side: the same request, the same answer, the same
queue after it, and nothing in it without an owner.

An answer that differs, a queue that differs and a fault of the queue are errors that tell all
requests so far. Time moves when the test says so, on both.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.property.broker_machine_clock import ClockedBroker
from tests.property.broker_machine_model import expected_of, normal
from tests.property.broker_machine_stage import Stage
from tests.property.broker_machine_sums import Tally, find_wrong_sums
from tests.property.broker_machine_telling import tell
from tests.support.leaks import find_faults
from tests.support.stored_queue import read_queue
from tidework.broker.connection.transport import drive
from tidework.broker.keys import queue_key
from tidework.clock import ManualClock, to_ms
from tidework.errors import TideworkError
from tidework.model.backlog import JobFilter, JobPage, QueueLoad
from tidework.model.job import JobState
from tidework.model.lease import ExchangeReply, QueueLimits
from tidework.testing.memory.broker import MemoryBroker

LIMITS = QueueLimits(
    lease=timedelta(seconds=10),
    poison_cap=2,
    release_cap=1,
    keep_succeeded=timedelta(seconds=20),
    keep_dead=timedelta(seconds=40),
    keep_count=3,
    keep_presence=timedelta(seconds=30),
)
START = datetime(2027, 1, 15, 8, tzinfo=UTC)
HOUR_MS = 3_600_000
READ_OUTS = frozenset(
    [
        "get_job",
        "forgotten_at",
        "list_jobs",
        "list_errors",
        "stats",
        "statistics",
        "workers",
        "stacks",
        "gather",
        "crontasks",
        "cron_record",
        "fires",
        "checkpoints",
        "tasks",
    ]
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to either broker: a method and what comes after the queue."""

    method: str
    args: tuple[Any, ...]
    named: dict[str, Any]

    def __str__(self) -> str:
        words = [tell(value) for value in self.args]
        words += [f"{name}={tell(value)}" for name, value in self.named.items()]
        return f"{self.method}({', '.join(words)})"


class Twins:
    """One queue, twice.

    stored: what the server keeps of it
    sent:   all requests that may change something
    last:   the one that was, if nothing else has happened since
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.queue = stage.next_queue()
        self.clock = ManualClock(START)
        self.memory = MemoryBroker(self.clock, LIMITS)
        self.server = ClockedBroker(stage.transport, LIMITS, self.clock)
        self.sent: list[Sent] = []
        self.last: Sent | None = None
        self.tally = Tally()
        self._log: list[str] = []
        self._leads_until = 0
        self.ask("open_queue")

    @property
    def now(self) -> int:
        """Unix ms, as both see it."""
        return to_ms(self.clock.now())

    def let_pass(self, ms: int) -> None:
        """Time goes by."""
        self._log.append(f"{ms} ms pass")
        self.clock.advance(timedelta(milliseconds=ms))
        self._expire()
        self._happens()

    def set_back(self, ms: int) -> None:
        """Somebody sets the clock back."""
        self._log.append(f"the clock is set back by {ms} ms")
        self.clock.jump(timedelta(milliseconds=-ms))
        self._happens()

    def ask(self, method: str, *args: Any, **named: Any) -> Any:
        """Send a request to both; the answer, or the error that both raised."""
        return self.send(Sent(method, args, named))

    def send(self, sent: Sent) -> Any:
        """As ``ask``."""
        self.stage.requests[sent.method] += 1
        self._log.append(str(sent))
        state = self.memory._open(self.queue)
        with self._telling():
            self.tally.before(sent.method, sent.args, state)
            # Only what may block needs an event loop.
            run = self.stage.runner.run if sent.method == "wait_for_document" else drive
            expected = self._answer(self.memory, sent, run)
            found = self._answer(self.server, sent, drive)
            self._log[-1] += f"\n        -> {tell(found)}"
            check_equal(found, expected)
            self.tally.after(sent.method, sent.args, found)
            if sent.method == "lead":
                self._note_leader(sent.args[1])
        if sent.method not in READ_OUTS:
            self.sent.append(sent)
            self.compare()
            self.last = sent
        return found

    def send_again(self, sent: Sent, *, changes: frozenset[str]) -> None:
        """A copy of the last request: nothing but ``changes`` (parts) may differ after it."""
        before = self.stored
        self.send(sent)
        with self._telling():
            found = self.stored.differences(before).keys() - changes
            assert not found, f"a copy of {sent} changed {self.stored.differences(before)}"

    def put_document(self, raw: bytes) -> None:
        """What a foreign program does."""
        self._log.append(f"LPUSH {raw!r}")
        drive(self.memory.put_document(self.queue, raw))
        self.stage.client.lpush(queue_key(self.queue, "inbox"), raw)
        self._happens()

    def next_page(self, state: JobState, within: JobFilter, limit: int, page: Page) -> Page:
        """The brokers write their cursors as they like: ids have to be the same, and the end."""
        self.stage.requests["list_jobs"] += 1
        named = f"{state.value}, {tell(within)}, limit={limit}, from={page}"
        self._log.append(f"list_jobs({named})")
        with self._telling():
            found, expected = (
                drive(broker.list_jobs(self.queue, state, within, cursor=cursor, limit=limit))
                for broker, cursor in ((self.server, page[0]), (self.memory, page[1]))
            )
            self._log[-1] += f"\n        -> {tell(found)}"
            assert isinstance(found, JobPage)
            assert found.ids == expected.ids, f"ids {found.ids}, expected {expected.ids}"
            assert (found.cursor is None) == (expected.cursor is None), (found, expected)
        return found.cursor, expected.cursor

    def compare(self) -> None:
        """The queue of both, and each for itself."""
        with self._telling():
            state = self.memory._open(self.queue)
            self.stored = normal(read_queue(self.stage.client, self.queue))
            expected = expected_of(state)
            if self.stored != expected:
                found = self.stored.differences(expected)
                lines = [f"{part}: {a}\n  expected: {b}" for part, (a, b) in found.items()]
                assert not found, "the server's queue differs\n" + "\n".join(lines)
            faults = find_faults(self.stored) + find_wrong_sums(self.stored, self.tally)
            assert not faults, "\n".join(faults)

    def close(self) -> None:
        """The server forgets the queue."""
        self.stage.transitions.update(self.stored.counters)
        self.stage.forget(self.queue)

    def _answer(self, broker: Any, sent: Sent, run: Callable[[Any], Any]) -> Any:
        asked: Awaitable[Any] = getattr(broker, sent.method)(self.queue, *sent.args, **sent.named)
        try:
            return run(asked)
        except TideworkError as error:
            return error

    def _note_leader(self, ttl: timedelta) -> None:
        """The server's own clock runs on, ours decides."""
        key = queue_key(self.queue, "leader")
        left = self.stage.client.pttl(key)
        ms = ttl // timedelta(milliseconds=1)
        assert 0 < left <= 2 * ms, f"the leader's key expires in {left} ms instead of {ms}"
        self.stage.client.pexpire(key, HOUR_MS)
        self._leads_until = self.memory._open(self.queue).leader[2]

    def _happens(self) -> None:
        self.last = None
        self.compare()

    def _expire(self) -> None:
        """What has expired does not come back when the clock is set back."""
        if self.now >= self._leads_until:
            self.stage.client.delete(queue_key(self.queue, "leader"))
            self.memory._open(self.queue).leader = ("", 0, 0)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            story = "\n".join(f"  {i:3}  {line}" for i, line in enumerate(self._log))
            error.add_note(f"Requests to queue {self.queue}:\n{story}")
            raise


Page = tuple[str | None, str | None]
"""Cursors of server and model."""


def check_equal(found: Any, expected: Any) -> None:
    """Answers of the server and of the model."""
    if isinstance(found, Exception):
        assert type(found) is type(expected), f"{found!r}, expected {expected!r}"
        assert vars(found) == vars(expected), f"{vars(found)}, expected {vars(expected)}"
        return
    if isinstance(found, QueueLoad) and isinstance(expected, QueueLoad):
        times = expected.service_time
        assert found.service_time.keys() == times.keys()
        assert all(
            math.isclose(found.service_time[task], times[task], rel_tol=1e-9) for task in times
        )
        found = replace(found, service_time=times)
    if isinstance(found, ExchangeReply) and isinstance(expected, ExchangeReply):
        # In no order: ends without a result are settled first.
        found = replace(found, refused=tuple(sorted(found.refused)))
        expected = replace(expected, refused=tuple(sorted(expected.refused)))
    assert found == expected, f"answer {tell(found)}\n  expected {tell(expected)}"
