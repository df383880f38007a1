"""Replies that come after those to later requests take nothing back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.support.waiting import until
from tests.unit.worker.consumers import Bench
from tidework.model.identity import QueueName
from tidework.model.lease import RenewReply
from tidework.model.outcome import Outcome

LEASE = timedelta(hours=1)
"""So long that nobody looks at the queue just because time has passed."""


async def test_an_overtaken_renewal_does_not_make_a_due_time_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(slots=3, lease=LEASE)
    bench.start()
    overtaken = asyncio.Event()
    renew = bench.broker.renew

    async def late(
        queue: QueueName, incarnation: str, leases: Sequence[tuple[str, str]]
    ) -> RenewReply:
        reply = await renew(queue, incarnation, leases)
        await overtaken.wait()
        return reply

    try:
        await bench.enqueue("long")
        await until(lambda: "long" in bench.consumer.held)
        await bench.enqueue("a")
        await until(lambda: "a" in bench.consumer.held)
        monkeypatch.setattr(bench.broker, "renew", late)
        bench.renewal.loop.nudge()
        await asyncio.sleep(0)
        job = bench.consumer.held["a"]
        bench.consumer.settle(job, Outcome.release(timedelta(seconds=0.3)), None)
        await until(lambda: "a" not in bench.consumer.held)
        overtaken.set()

        await until(lambda: "a" in bench.consumer.held)
    finally:
        await bench.stop()
