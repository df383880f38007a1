"""What every request to Redis has to know of its queue: the connection and the bounds.

Both stand in its TaskQueue and are remembered beyond its end: what was begun in a queue, its
mirror of CronTasks above all, has to be ended in the same place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidework.errors import ConfigurationError
from tidework.manifests import TaskQueue
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits
from tidework_operator.cluster import Kind, Object
from tidework_operator.connections import DEFAULT
from tidework_operator.documents import TaskQueueDocuments
from tidework_operator.inventory import Inventory


@dataclass(frozen=True, slots=True)
class _Known:
    """found: the object that it was read from; limits: None while nobody has said them."""

    found: Object | None
    connection: str
    limits: QueueLimits | None


class KnownQueues:
    """Looks a queue up in the inventory.

    on_moved: called with a queue whose TaskQueue names another connection than before
    """

    def __init__(
        self, inventory: Inventory, *, on_moved: Callable[[QueueName], None] = lambda _queue: None
    ) -> None:
        self._inventory = inventory
        self._documents = TaskQueueDocuments(inventory)
        self._on_moved = on_moved
        self._known: dict[QueueName, _Known] = {}

    def names(self) -> set[QueueName]:
        """The names of all TaskQueues."""
        names = set()
        for found in self._inventory.objects(Kind.TASK_QUEUE):
            try:
                names.add(QueueName(found["metadata"]["namespace"], found["metadata"]["name"]))
            except ConfigurationError:
                # The API server refuses such a name, unless it serves an older CRD.
                continue
        return names

    def connection(self, queue: QueueName) -> str:
        """The name of its Redis connection."""
        return self._look(queue).connection

    def limits(self, queue: QueueName) -> QueueLimits:
        """Its bounds; the usual ones where nobody has said any."""
        return self._look(queue).limits or QueueLimits()

    def has_limits(self, queue: QueueName) -> bool:
        """Did its TaskQueue say its bounds?"""
        return self._look(queue).limits is not None

    def note_connection(self, queue: QueueName, connection: str) -> None:
        """The queue was found in this connection; a TaskQueue knows better."""
        if self._look(queue).found is None:
            self._known[queue] = _Known(None, connection, None)

    def _look(self, queue: QueueName) -> _Known:
        known = self._known.get(queue)
        found = self._inventory.get(Kind.TASK_QUEUE, queue.namespace, queue.name)
        if known is not None and (found is None or known.found is found):
            return known
        if found is None:
            return _Known(None, DEFAULT, None)
        document = self._documents.read(found)
        if isinstance(document, TaskQueue):
            fresh = _Known(found, document.spec.redis, document.limits)
        elif known is not None:
            fresh = _Known(found, known.connection, known.limits)
        else:
            fresh = _Known(found, DEFAULT, None)
        self._known[queue] = fresh
        if known is not None and known.connection != fresh.connection:
            self._on_moved(queue)
        return fresh
