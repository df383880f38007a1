"""Requests about the progress of jobs, as rows of the table of requests."""

from __future__ import annotations

from tests.integration.broker.request_steps import claim_all, whole
from tests.integration.broker.rig import Rig, Row
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.model.lease import Settlement
from tidework.model.outcome import Outcome
from tidework.model.progress import ProgressNote


async def tell(rig: Rig, broker: RedisBroker, token: str = "w:1", sequence: int = 1) -> object:
    text = b'{"":%d}' % sequence
    note = ProgressNote("s1", token, sequence, b'[1,null,""]', text)
    return await broker.note_progress(rig.queue, [note])


async def tell_more(rig: Rig) -> None:
    assert await tell(rig, rig.broker, sequence=2) == ()


async def give_back_and_tell_elsewhere(rig: Rig) -> None:
    """Another worker has the job and goes on from there."""
    await rig.exchange("w", 2, 0, Settlement("s1", "w:1", Outcome.release()))
    claimed = (await rig.exchange("v", 1, 9)).claimed
    assert "s1" in [found.id for found in claimed]
    assert await tell(rig, rig.broker, "v:1", 7) == ()


NOTES = [
    Row(
        "note_progress",
        "a later one has come since",
        tell,
        before=claim_all,
        newer=tell_more,
        alike=whole,
    ),
    Row(
        "note_progress",
        "the job is another worker's by now",
        tell,
        before=claim_all,
        newer=give_back_and_tell_elsewhere,
    ),
    Row(
        "note_progress",
        "the job has ended since",
        tell,
        before=claim_all,
        newer=lambda rig: rig.end("w", 2, "s1", of=1),
    ),
]
