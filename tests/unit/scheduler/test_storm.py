"""Two schedulers under random faults: whatever happens, every due instant has one verdict."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.rig import START, Rig, make_spec
from tidework.scheduler.due import CatchUp, CatchUpMode, to_unix

METHODS = ("lead", "cron_record", "admit_cron", "decide_fires", "put_crontasks", "run_now")

step = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, 90)),
    st.tuples(st.just("lead"), st.integers(0, 1)),
    st.tuples(st.just("tick"), st.integers(0, 1)),
    st.tuples(st.just("both"), st.just(0)),
    st.tuples(st.just("away"), st.integers(0, 1)),
    st.tuples(st.just("back"), st.integers(0, 1)),
    st.tuples(st.just("resign"), st.integers(0, 1)),
    st.tuples(st.just("lost"), st.integers(0, 2 * len(METHODS) - 1)),
    st.tuples(st.just("silent"), st.integers(0, 2 * len(METHODS) - 1)),
    st.tuples(st.just("freeze"), st.integers(0, 1)),
    st.tuples(st.just("thaw"), st.integers(0, 1)),
)


class Storm:
    """Two rigs on one broker; a frozen one does not tick until it thaws."""

    def __init__(self) -> None:
        first = Rig(make_spec(catch_up=CatchUp(CatchUpMode.ALL), run_now="once"))
        self.rigs = (first, first.another())
        self._frozen: dict[int, tuple[asyncio.Event, asyncio.Task[timedelta]]] = {}

    async def take(self, what: str, number: int) -> None:
        rig = self.rigs[number % 2]
        match what:
            case "pass":
                rig.clock.advance(timedelta(seconds=number))
            case "lead" if number not in self._frozen:
                await rig.leadership.tick()
            case "tick" if number not in self._frozen:
                await rig.scheduler.tick()
            case "both" if not self._frozen:
                await asyncio.gather(*(rig.scheduler.tick() for rig in self.rigs))
            case "away" | "back":
                rig.broker.away = what == "away"
            case "resign" if number not in self._frozen and not rig.broker.away:
                await rig.leadership.resign()
            case "lost" | "silent":
                rig.broker.fail(METHODS[number // 2], what)
            case "freeze" if number not in self._frozen:
                await self._freeze(number)
            case "thaw":
                await self.thaw(number)

    async def _freeze(self, number: int) -> None:
        """In the midst of a tick, before its fires are written; not at all if none are due."""
        rig = self.rigs[number]
        reached, go_on = rig.broker.hold("decide_fires")
        ticking = asyncio.create_task(rig.scheduler.tick())
        waiting = asyncio.create_task(reached.wait())
        await asyncio.wait((ticking, waiting), return_when=asyncio.FIRST_COMPLETED)
        if reached.is_set():
            self._frozen[number] = go_on, ticking
        else:
            waiting.cancel()
            rig.broker.release("decide_fires")

    async def thaw(self, number: int) -> None:
        if number in self._frozen:
            go_on, ticking = self._frozen.pop(number)
            go_on.set()
            await ticking

    async def calm(self) -> None:
        """All is well again, for as long as a takeover takes."""
        for number, rig in enumerate(self.rigs):
            await self.thaw(number)
            rig.broker.away = False
            for method in METHODS:
                rig.broker.fail(method)
        for _ in range(10):
            self.rigs[0].clock.advance(timedelta(seconds=1))
            for rig in self.rigs:
                await rig.settle()


@settings(max_examples=150)
@given(st.lists(step, min_size=10, max_size=80))
async def test_every_due_instant_has_one_verdict(steps: list[tuple[str, int]]) -> None:
    storm = Storm()
    first = storm.rigs[0]
    await first.settle()

    for what, number in steps:
        await storm.take(what, number)
    await storm.calm()

    schedule = first.registry.specs["digest"].rules.schedule
    due = schedule.between(START, first.clock.now(), 10_000)
    due_ids = [f"digest-{to_unix(at)}" for at in due]
    fires = [job_id for job_id in await first.jobs() if "-run-" not in job_id]
    import os
    if os.environ.get("DBG"): print(len(due_ids), [r.scheduler.counters for r in storm.rigs])
    assert fires == sorted(due_ids)
    assert sum((await first.verdicts()).values()) == len(due_ids)
    assert len(await first.jobs()) == len(due_ids) + 1
