"""The first word with Redis: a program that starts before Redis can serve waits for it.

Waiting mends what passes: a server that is not there yet, loads its data, is a replica until a
failover is over, or is full. It mends no wrong password and no queue of another layout: those end
the program, with the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from tidework.backoff import Backoff
from tidework.broker.broker import Store
from tidework.errors import BrokerFullError, BrokerUnavailableError
from tidework.logs import queue_fields
from tidework.model.identity import QueueName

PASSING = (BrokerUnavailableError, BrokerFullError)

logger = logging.getLogger(__name__)


async def open_queues(broker: Store, queues: Iterable[QueueName]) -> None:
    """Open each of them, one after the other; wait with growing pauses where that has to wait.

    Each failure is told when it happens, and the end of the wait too. Raises BrokerRefusedError,
    LayoutError, and whatever else of BrokerError waiting does not mend.
    """
    for queue in queues:
        await _open(broker, queue)


async def open_queues_until(
    stop: asyncio.Event, broker: Store, queues: Iterable[QueueName]
) -> bool:
    """As ``open_queues``, unless ``stop`` is set first: False then."""
    opening = asyncio.create_task(open_queues(broker, queues))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            opening.result()
    finally:
        stopping.cancel()
        # Again and again: redis-py may swallow a cancellation that comes while it connects.
        while not opening.done():
            opening.cancel()
            await asyncio.wait({opening}, timeout=0.1)
    return not stop.is_set()


async def _open(broker: Store, queue: QueueName) -> None:
    backoff = Backoff()
    while (error := await _failure(broker, queue)) is not None:
        delay = backoff.next().total_seconds()
        logger.warning(
            "queue %s cannot be opened yet: %s; next attempt in %.1f s",
            queue,
            error,
            delay,
            extra={"event": "queue_not_opened", **queue_fields(queue)},
        )
        await asyncio.sleep(delay)
    if backoff.failures:
        logger.info(
            "Redis answers: queue %s is open",
            queue,
            extra={"event": "queue_opened", **queue_fields(queue)},
        )


async def _failure(broker: Store, queue: QueueName) -> Exception | None:
    """Why the queue cannot be opened now; None once it is open."""
    try:
        await broker.open_queue(queue)
    except PASSING as error:
        return error
    return None
