"""The snapshot: CronTasks as the last leader mirrored them into Redis.

For a leader that has restarted while the API server is away: it fires from here until the first
complete list. A queue is taken whole or not at all: the scheduler forgets the record of a CronTask
that it is not told of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import timedelta

from tidework.broker.broker import Schedules
from tidework.clock import Clock
from tidework.errors import BrokerError, ConfigurationError, ScheduleError
from tidework.logs import queue_fields
from tidework.manifests import CronTask, parse_document
from tidework.model.identity import QueueName
from tidework.scheduler.documents import spec_of
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.spec import CronSpec
from tidework_operator.connections import Connections
from tidework_operator.inventory import Inventory
from tidework_operator.leadership import Election
from tidework_operator.patience import USUAL, Patience

logger = logging.getLogger(__name__)

AGAIN = timedelta(seconds=10)


class Snapshot:
    """``tick`` is for a Loop.

    namespaces: those that the operator serves; empty = all
    on_found:   told of each queue in Redis, with the name of its connection
    """

    def __init__(
        self,
        election: Election,
        inventory: Inventory,
        connections: Connections,
        registry: CronRegistry,
        clock: Clock,
        *,
        namespaces: Collection[str] = (),
        on_found: Callable[[QueueName, str], None] = lambda _queue, _connection: None,
        patience: Patience = USUAL,
    ) -> None:
        self._election = election
        self._inventory = inventory
        self._connections = connections
        self._registry = registry
        self._clock = clock
        self._namespaces = frozenset(namespaces)
        self._on_found = on_found
        self._wait_for_list = patience.first_list
        self._tenure = 0
        self._taken: dict[QueueName, list[CronSpec]] = {}
        self._waiting_since: float | None = None

    @property
    def is_fresh(self) -> bool:
        """Does the registry hold the snapshot, read in the present lead?"""
        return self._election.leading and self._tenure == self._election.tenure

    async def tick(self) -> timedelta:
        """Read it if it is needed; the wait until the next look."""
        if self._inventory.complete or not self._election.leading:
            self._waiting_since = None
            self._tenure = 0
            return self._wait_for_list
        now = self._clock.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        if now - self._waiting_since < self._wait_for_list.total_seconds():
            return timedelta(seconds=1)
        if self._tenure != self._election.tenure:
            self._taken.clear()
        await self._take()
        return AGAIN

    async def _take(self) -> None:
        """Add the queues that could not be read before; those that were stay as they are."""
        known = len(self._taken)
        for name in self._connections.names():
            try:
                broker = self._connections.broker(name)
                found = await broker.queues()
            except (BrokerError, ConfigurationError) as error:
                logger.warning(
                    "no snapshot from Redis connection %s: %s",
                    name,
                    error,
                    extra={"event": "snapshot_unreadable"},
                )
                continue
            for queue in found:
                if self._namespaces and queue.namespace not in self._namespaces:
                    continue
                self._on_found(queue, name)
                if queue not in self._taken and (read := await self._read(broker, queue)):
                    self._taken[queue] = read
        if self._inventory.complete or not self._election.leading:
            return
        if self.is_fresh and len(self._taken) == known:
            return
        specs = [spec for each in self._taken.values() for spec in each]
        self._registry.replace(specs, self._taken)
        self._tenure = self._election.tenure
        logger.warning(
            "the API server is away: %d CronTasks fire as they were mirrored into Redis",
            len(specs),
            extra={"event": "snapshot_used"},
        )

    async def _read(self, broker: Schedules, queue: QueueName) -> list[CronSpec]:
        """The CronTasks of a queue; none if one of them cannot be read."""
        now = self._clock.now()
        specs = []
        try:
            for uid, document in (await broker.crontasks(queue)).items():
                crontask = parse_document(document, file=f"snapshot of queue {queue}, {uid}")
                if not isinstance(crontask, CronTask):
                    raise ConfigurationError(f"its mirror holds a {crontask.kind}, {uid}")
                specs.append(spec_of(crontask, now))
        except (BrokerError, ConfigurationError, ScheduleError) as error:
            extra = {"event": "snapshot_unreadable", **queue_fields(queue)}
            logger.warning("queue %s waits for the API server: %s", queue, error, extra=extra)
            return []
        return specs
