"""Replay and purge of many jobs: page after page, each in one bounded step."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from tidework.broker.answers import PurgeAnswer, ReplayAnswer
from tidework.broker.broker import Producer
from tidework.model.backlog import JobFilter
from tidework.model.identity import QueueName
from tidework.model.job import JobState

PAGE = 100


async def replay_all(
    broker: Producer, queue: QueueName, within: JobFilter
) -> Counter[ReplayAnswer]:
    """Replay every dead letter that fits and is dead by now; how many of each answer."""
    answers: Counter[ReplayAnswer] = Counter()
    async for ids in _pages(broker, queue, JobState.DEAD, within):
        answers.update(await broker.replay(queue, ids))
    return answers


async def purge_all(
    broker: Producer, queue: QueueName, state: JobState, within: JobFilter
) -> Counter[PurgeAnswer]:
    """Purge every job of an ended state that fits and is there by now."""
    answers: Counter[PurgeAnswer] = Counter()
    async for ids in _pages(broker, queue, state, within):
        answers.update(await broker.purge(queue, ids))
    return answers


async def _pages(
    broker: Producer, queue: QueueName, state: JobState, within: JobFilter
) -> AsyncIterator[tuple[str, ...]]:
    """From the newest to the oldest: what ends meanwhile comes before all pages, hence in none."""
    cursor = None
    further = True
    while further:
        page = await broker.list_jobs(queue, state, within, cursor=cursor, limit=PAGE)
        if page.ids:
            yield page.ids
        cursor, further = page.cursor, page.cursor is not None
