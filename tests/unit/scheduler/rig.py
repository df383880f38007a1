"""What the scheduler's tests share: schedulers on one memory broker and one manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from tidework.broker.broker import Broker
from tidework.clock import ManualClock
from tidework.errors import BrokerUnavailableError
from tidework.model.fire import CronRecord, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import Outcome
from tidework.model.schedules.cron import parse_cron
from tidework.scheduler.due import FireRules
from tidework.scheduler.leadership import QueueLeadership
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.scheduler import Scheduler
from tidework.scheduler.spec import CronSpec
from tidework.testing.memory.broker import MemoryBroker

QUEUE = QueueName("shop", "emails")
START = datetime(2026, 1, 5, 10, 0, 0, 250_000, tzinfo=UTC)


def at(clock_time: str) -> datetime:
    """A moment of the day on which the tests play."""
    hour, minute, second = (int(part) for part in clock_time.split(":"))
    return datetime(2026, 1, 5, hour, minute, second, tzinfo=UTC)


def unix(clock_time: str) -> int:
    return int(at(clock_time).timestamp())


def make_spec(schedule: str = "* * * * *", uid: str = "digest", **given: Any) -> CronSpec:
    """A CronTask; ``rules`` fields (deadline, catch_up, start, end) may be given directly."""
    rule_names = ("deadline", "catch_up", "start", "end")
    rules = {name: given.pop(name) for name in rule_names if name in given}
    given.setdefault("rules", FireRules(parse_cron(schedule), **rules))
    return CronSpec(
        uid=uid, **{"name": uid, "queue": QUEUE, "task": "send_digest", "created": START, **given}
    )


class FlakyBroker:
    """Passes every call on; ``fail`` and ``hold`` get in between."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._faults: dict[str, list[str]] = {}
        self._holds: dict[str, tuple[asyncio.Event, asyncio.Event]] = {}
        self.calls: list[str] = []
        self.away = False

    def fail(self, method: str, *whens: str) -> None:
        """The next calls: 'lost' = not done; 'silent' = done, but no reply comes."""
        self._faults[method] = list(whens)

    def hold(self, method: str) -> tuple[asyncio.Event, asyncio.Event]:
        """The next call sets the first event, and goes on once the second is set."""
        self._holds[method] = (asyncio.Event(), asyncio.Event())
        return self._holds[method]

    def release(self, method: str) -> None:
        """Hold the next call no more."""
        self._holds.pop(method, None)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._broker, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            faults = self._faults.get(name)
            fault = faults.pop(0) if faults else ""
            if name in self._holds:
                reached, go_on = self._holds.pop(name)
                reached.set()
                await go_on.wait()
            if self.away or fault == "lost":
                raise BrokerUnavailableError("Redis cannot be reached")
            answer = await real(*args, **kwargs)
            if fault == "silent":
                raise BrokerUnavailableError("Redis does not answer")
            return answer

        return call


class Rig:
    """One scheduler; ``another`` makes a second one on the same broker and clock."""

    def __init__(
        self,
        *specs: CronSpec,
        memory: MemoryBroker | None = None,
        clock: ManualClock | None = None,
        holder: str = "a",
    ) -> None:
        self.clock = clock or ManualClock(START)
        self.memory = memory or MemoryBroker(self.clock)
        self.broker = FlakyBroker(self.memory)
        broker = cast("Broker", self.broker)
        self.registry = CronRegistry(specs)
        self.leadership = QueueLeadership(broker, self._queues, holder)
        self.scheduler = Scheduler(broker, self.clock, self.registry, self.leadership)
        self._sequence = 0

    def _queues(self) -> frozenset[QueueName]:
        return self.scheduler.queues()

    def another(self, *specs: CronSpec, holder: str = "b") -> Rig:
        """A second scheduler, by default with the same CronTasks."""
        given = specs or tuple(self.registry.specs.values())
        return Rig(*given, memory=self.memory, clock=self.clock, holder=holder)

    async def settle(self) -> None:
        """Tick until nothing is left to do now."""
        await self.leadership.tick()
        for _ in range(10_000):
            if await self.scheduler.tick() > timedelta(0):
                return
        raise AssertionError("the scheduler does not come to rest")

    async def run_to(self, clock_time: str) -> None:
        """Let time pass in steps of a second, as the loops would."""
        while self.clock.now() < at(clock_time):
            self.clock.advance(min(timedelta(seconds=1), at(clock_time) - self.clock.now()))
            await self.settle()

    async def outage_to(self, clock_time: str) -> None:
        """Let time pass while no scheduler runs, then come back."""
        self.clock.advance(at(clock_time) - self.clock.now())
        await self.settle()

    def change(self, uid: str = "digest", **given: Any) -> None:
        """Edit one CronTask."""
        specs = dict(self.registry.specs)
        specs[uid] = replace(specs[uid], **given)
        self.registry.replace(specs.values())

    async def jobs(self, state: JobState | None = None) -> list[str]:
        """Ids of all jobs, or of those in one state, sorted."""
        found: list[str] = []
        for name in [state] if state else JobState:
            page = await self.memory.list_jobs(QUEUE, name, limit=100_000)
            found += page.ids
        return sorted(found)

    async def record(self, uid: str = "digest") -> CronRecord:
        found = await self.memory.cron_record(QUEUE, uid)
        assert found is not None
        return found

    async def verdicts(self, uid: str = "digest") -> dict[Verdict, int]:
        """Counts above zero."""
        return {name: n for name, n in (await self.record(uid)).verdicts.items() if n}

    async def claim(self, want: int = 100) -> list[Settlement]:
        """Run what is ready, as a worker; each is settled by ``complete``."""
        self._sequence += 1
        request = ExchangeRequest("worker.1", self._sequence, want)
        reply = await self.memory.exchange(QUEUE, request)
        return [Settlement(job.id, job.token, Outcome.complete()) for job in reply.claimed]

    async def complete(self, settlements: list[Settlement]) -> None:
        self._sequence += 1
        request = ExchangeRequest("worker.1", self._sequence, 0, tuple(settlements))
        await self.memory.exchange(QUEUE, request)
