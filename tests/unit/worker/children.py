"""Children without processes: the test speaks for them, frame by frame."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from tests.unit.worker.jobs import Source
from tidework.clock import SystemClock
from tidework.model.outcome import Outcome
from tidework.worker import frames
from tidework.worker.places.loop_places import LoopPlaces
from tidework.worker.places.slot import Recycling
from tidework.worker.places.slot_places import SlotPlaces
from tidework.worker.places.slots import SlotPool

FIRST_PID = 1_000_000_000
"""Beyond every pid of a real process: a signal to it hits nobody."""


class FakeChild:
    """The far end of a child's pipes."""

    def __init__(self, key: int, pipe: int, permits: int, places: int = 0) -> None:
        self.key = key
        self.places = places
        self.pid = FIRST_PID + key
        self.pipe = socket.socket(fileno=os.dup(pipe))
        self.pipe.setblocking(False)
        self.permits = os.dup(permits)
        self._buffer = frames.FrameBuffer()
        self._jobs: list[frames.JobFrame] = []

    def jobs(self) -> list[frames.JobFrame]:
        """Job frames that arrived since the last look."""
        return [found for found in self.orders() if isinstance(found, frames.JobFrame)]

    def orders(self) -> list[frames.Order]:
        """Everything that arrived since the last look."""
        found = []
        try:
            while data := self.pipe.recv(65536):
                found += [frames.decode_order(p) for p in self._buffer.feed(data)]
        except BlockingIOError:
            pass
        return found

    def is_told_to_end(self) -> bool:
        """Did the supervisor close its end?"""
        try:
            return self.pipe.recv(1) == b""
        except BlockingIOError:
            return False

    def take_permit(self) -> int:
        """As a child does before it starts a job that was sent ahead."""
        (number,) = frames.PERMIT.unpack(os.read(self.permits, frames.PERMIT.size))
        return int(number)

    def say(self, *reports: bytes) -> None:
        self.pipe.sendall(b"".join(reports))

    def close(self) -> None:
        self.pipe.close()
        os.close(self.permits)


class FakeOrders:
    """A template that starts FakeChildren."""

    def __init__(self) -> None:
        self.children: list[FakeChild] = []
        self.away = False
        self.killed = 0

    def order_child(self, key: int, places: int, pipe: int, permits: int) -> bool:
        if self.away:
            return False
        self.children.append(FakeChild(key, pipe, permits, places))
        return True

    def kill(self) -> None:
        self.killed += 1

    def close(self) -> None:
        for child in self.children:
            child.close()


class PoolBench:
    """A pool over fake children, with one source."""

    def __init__(
        self, places: int = 1, *, has_loop: bool = False, jobs: int = 1000, memory: int = 1 << 30
    ) -> None:
        self.clock = SystemClock()
        self.orders = FakeOrders()
        recycling = Recycling(jobs, memory)
        self.pool = SlotPool(places, self.orders, recycling, self.clock, has_loop=has_loop)
        self.source = Source()
        self.pool.add_source(self.source)

    @property
    def slot_places(self) -> SlotPlaces:
        """Of a pool with slots."""
        assert isinstance(self.pool.places, SlotPlaces)
        return self.pool.places

    @property
    def loop_places(self) -> LoopPlaces:
        """Of a pool with an event loop."""
        assert isinstance(self.pool.places, LoopPlaces)
        return self.pool.places

    def start(self) -> None:
        """All slots have a child that is ready."""
        self.pool.open()
        for child in self.orders.children:
            self.bring_up(child)

    def bring_up(self, child: FakeChild) -> None:
        self.pool.on_child_started(child.key, child.pid, None)
        child.say(frames.ready_frame())
        self.read()

    def read(self) -> None:
        """Have the pool read what the children said, without waiting for the loop."""
        for link in self.pool.links():
            if link.retired_at is None:
                link.read()

    def begin(self, child: FakeChild, number: int, *, ago: float = 0.0) -> None:
        """The child starts a job, ``ago`` seconds before now."""
        child.say(frames.started_frame(number, self.clock.monotonic() - ago))
        self.read()

    def finish(self, child: FakeChild, number: int, seconds: float = 0.0) -> None:
        child.say(frames.ended_frame(number, Outcome.complete(), seconds))
        self.read()

    def make_quick(self, task: str = "t") -> None:
        """Jobs of the task are known to be short."""
        self.pool.places.times.note(task, 0.001)

    def look(self) -> None:
        """What the timer does."""
        self.pool._look(self.clock.monotonic())

    def close(self) -> None:
        self.pool._timer.cancel()
        for link in list(self.pool._links.values()):
            link.close()
        self.orders.close()


Make = Callable[..., PoolBench]
