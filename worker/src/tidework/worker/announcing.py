"""What a worker's application can do for its queues: said to Redis, and in the log where it is odd.

Whoever enqueues by name asks Redis whether any worker has announced the task. Jobs that wait for a
worker that knows their task are ready again once one announces it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from tidework.broker.broker import Claims
from tidework.clock import Clock
from tidework.meant import did_you_mean, listed
from tidework.model.identity import QueueName
from tidework.model.task import TaskSpec

MOST_TASKS = 1000
"""Names that are announced; an application of more is not checked beyond them."""
AGAIN_AFTER_S = 3600.0
DEFAULT_QUEUE = "default"

logger = logging.getLogger(__name__)


class Announcing:
    """Announces the tasks of one worker, once to each queue and every hour.

    specs:   the application's tasks, kept up to date by their owner
    version: of the application, as whoever scales the worker knows it; '' without one
    """

    def __init__(
        self, broker: Claims, specs: Mapping[str, TaskSpec], version: str, clock: Clock
    ) -> None:
        self._broker = broker
        self._specs = specs
        self._version = version
        self._clock = clock
        self._done: dict[QueueName, float] = {}

    def renew(self) -> None:
        """The application is another one now."""
        self._done.clear()

    async def announce(self, queue: QueueName) -> None:
        """If it is time to. Raises BrokerError; the next call tries again."""
        now, last = self._clock.monotonic(), self._done.get(queue)
        if last is not None and now - last < AGAIN_AFTER_S:
            return
        tasks = sorted(self._specs)[:MOST_TASKS]
        recalled = await self._broker.announce(queue, self._version, tasks)
        self._done[queue] = now
        if recalled:
            extra = {"event": "jobs_known", "queue": queue.name, "jobs": recalled}
            logger.info(
                "jobs that waited for a worker that knows their task are ready", extra=extra
            )


def warn_of_other_queues(specs: Mapping[str, TaskSpec], served: Sequence[str]) -> None:
    """Log it where no task of the application is declared for a queue that the worker serves.

    Tasks that name no queue are often sent to one by name, by CronTasks above all: no warning.
    """
    declared = sorted({spec.queue for spec in specs.values()})
    if not declared:
        logger.warning(
            "the application has no tasks: every job of its queues is unknown to it",
            extra={"event": "application_without_tasks"},
        )
    elif not set(declared) & set(served):
        level = logging.INFO if declared == [DEFAULT_QUEUE] else logging.WARNING
        meant = did_you_mean(served[0], declared) if len(served) == 1 else ""
        logger.log(
            level,
            "no task of the application is declared for a queue that this worker serves (%s): "
            "they are declared for %s%s Only jobs that are sent there by name will run; "
            "serve the others with --queue",
            listed(served),
            listed(declared),
            meant or ".",
            extra={"event": "queue_without_tasks"},
        )
