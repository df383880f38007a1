"""The CronTasks of a namespace as their leaders mirrored them into Redis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidework.broker.broker import Broker
from tidework.crontasks.errors import CronTaskNotFoundError
from tidework.manifests import CronTask, parse_document
from tidework.model.identity import QueueName
from tidework.scheduler.documents import spec_of
from tidework.scheduler.spec import CronSpec
from tidework.scheduler.status import Circumstances, CronStatus, describe


@dataclass(frozen=True, slots=True)
class FoundCronTask:
    """A CronTask by its place. ``document``: as it was mirrored, JSON."""

    queue: QueueName
    uid: str
    document: Mapping[str, Any]

    @property
    def name(self) -> str:
        found: str = self.document["metadata"]["name"]
        return found

    @property
    def crontask(self) -> CronTask:
        """The document, read. Raises ManifestErrors for one of a later version."""
        found = parse_document(dict(self.document))
        assert isinstance(found, CronTask)
        return found

    def spec(self, now: datetime) -> CronSpec:
        """What the scheduler works with."""
        return spec_of(self.crontask, now)


async def find_crontasks(broker: Broker, namespace: str) -> tuple[FoundCronTask, ...]:
    """Those of all queues of the namespace, by name."""
    found = []
    for queue in await broker.queues():
        if queue.namespace == namespace:
            documents = await broker.crontasks(queue)
            found += [FoundCronTask(queue, uid, each) for uid, each in documents.items()]
    return tuple(sorted(found, key=lambda each: (each.name, each.queue.name)))


async def find_crontask(broker: Broker, namespace: str, name: str) -> FoundCronTask:
    """The one of that name. Raises CronTaskNotFoundError."""
    known = await find_crontasks(broker, namespace)
    for found in known:
        if found.name == name:
            return found
    raise CronTaskNotFoundError(name, namespace, tuple(found.name for found in known))


async def status_of(broker: Broker, found: FoundCronTask, now: datetime) -> CronStatus:
    """How it stands. Who leads is not ours to know here: one that is mirrored has a leader."""
    record = await broker.cron_record(found.queue, found.uid)
    return describe(found.spec(now), record, Circumstances(now=now, led=True))
