"""Two schedulers under random faults: whatever happens, every due instant has one verdict."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest

from tests.unit.scheduler.rig import START, Rig, make_spec
from tidework.model.schedules.schedule import Every
from tidework.scheduler.due import CatchUp, CatchUpMode, FireRules, to_unix

METHODS = ("lead", "cron_record", "admit_cron", "decide_fires", "put_crontasks", "run_now")


class Storm:
    """Two rigs on one broker; a frozen one does not tick until it thaws."""

    def __init__(self, chance: random.Random) -> None:
        rules = FireRules(Every(timedelta(seconds=5)), catch_up=CatchUp(CatchUpMode.ALL))
        first = Rig(make_spec(rules=rules, run_now="once"))
        self._chance = chance
        self.rigs = (first, first.another())
        self._frozen: dict[int, tuple[asyncio.Event, asyncio.Task[timedelta]]] = {}

    async def step(self) -> None:
        """Some seconds pass, something may break, each scheduler may get a turn."""
        self.rigs[0].clock.advance(timedelta(seconds=self._chance.randint(0, 7)))
        number = self._chance.randrange(2)
        rig = self.rigs[number]
        match self._chance.randrange(8):
            case 0 | 1:
                fault = self._chance.choice(("lost", "silent"))
                rig.broker.fail(self._chance.choice(METHODS), fault)
            case 2:
                rig.broker.away = not rig.broker.away
            case 3:
                await self._freeze(number)
            case 4:
                await self.thaw(number)
            case 5 if number not in self._frozen and not rig.broker.away:
                await rig.leadership.resign()
        turns = [found for n, found in enumerate(self.rigs) if n not in self._frozen]
        for rig in turns:
            if self._chance.random() < 0.7:
                await rig.leadership.tick()
        await asyncio.gather(*(rig.scheduler.tick() for rig in turns))

    async def _freeze(self, number: int) -> None:
        """In the midst of a tick, before its fires are written; not at all if none are due."""
        if number in self._frozen:
            return
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


@pytest.mark.parametrize("seed", range(40))
async def test_every_due_instant_has_one_verdict(seed: int) -> None:
    storm = Storm(random.Random(seed))
    first, second = storm.rigs
    await first.settle()

    for _ in range(120):
        await storm.step()
    await storm.calm()

    due = first.registry.specs["digest"].rules.schedule.between(START, first.clock.now(), 10_000)
    due_ids = [f"digest-{to_unix(at)}" for at in due]
    fires = [job_id for job_id in await first.jobs() if "-run-" not in job_id]
    assert fires == due_ids
    assert sum((await first.verdicts()).values()) == len(due_ids)
    assert len(await first.jobs()) == len(due_ids) + 1
    counters = first.scheduler.counters, second.scheduler.counters
    assert sum(found.failed_rounds for found in counters) > 0, "the storm was too weak"
