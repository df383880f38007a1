"""Requests about blocks that are to be done once, as rows of the table of requests."""

from __future__ import annotations

from tests.integration.broker.request_steps import claim_all, whole
from tests.integration.broker.rig import MINUTE, Rig, Row
from tidework.broker.answers import OnceAnswer
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.lease import Lease

ONCE = Lease("s1", "w:1")


async def begin_once(rig: Rig, broker: RedisBroker) -> OnceAnswer:
    return await broker.once_begin(rig.queue, ONCE, "k")


async def claim_and_begin_once(rig: Rig) -> None:
    await claim_all(rig)
    assert await begin_once(rig, rig.broker) is OnceAnswer.FIRST


async def begin_once_elsewhere(rig: Rig) -> None:
    """Another job does."""
    lease = Lease("s2", "w:1")
    assert await rig.broker.once_begin(rig.queue, lease, "k") is OnceAnswer.FIRST


async def end_once_and_job(rig: Rig) -> None:
    assert await rig.broker.once_end(rig.queue, ONCE, "k", ttl=MINUTE)
    await rig.end("w", 2, "s1", of=1)


BLOCKS = [
    Row(
        "once_begin",
        "a block that was done since",
        begin_once,
        before=claim_all,
        newer=end_once_and_job,
        alike=whole,
    ),
    Row(
        "once_end",
        "done",
        lambda rig, broker: broker.once_end(rig.queue, ONCE, "k", ttl=MINUTE),
        before=claim_and_begin_once,
        newer=lambda rig: rig.end("w", 2, "s1", of=1),
        alike=whole,
    ),
    Row(
        "once_end",
        "not done, and begun by another since",
        lambda rig, broker: broker.once_end(rig.queue, ONCE, "k", ttl=None),
        before=claim_and_begin_once,
        newer=begin_once_elsewhere,
    ),
]
