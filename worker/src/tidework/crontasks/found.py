"""The CronTasks of a namespace as their leaders mirrored them into Redis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from tidework.broker.broker import Broker
from tidework.crontasks.errors import CronTaskNotFoundError
from tidework.errors import ConfigurationError, ScheduleError
from tidework.manifests import CronTask, parse_document
from tidework.model.identity import QueueName
from tidework.model.schedules.schedule import EPOCH
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
        return _read(json.dumps(self.document))[0]

    @property
    def spec(self) -> CronSpec:
        """What the scheduler works with. Raises ManifestErrors as ``crontask``."""
        return _read(json.dumps(self.document))[1]

    @property
    def fault(self) -> str:
        """Why this program cannot read the document, '' if it can: a later version wrote it."""
        try:
            _read(json.dumps(self.document))
        except (ConfigurationError, ScheduleError) as error:
            return str(error)
        return ""

    @property
    def in_words(self) -> str:
        """When it fires, in plain words."""
        return _say(json.dumps(self.document))


@lru_cache(maxsize=4096)
def _say(text: str) -> str:
    # A library that only this needs.
    from tidework.crontasks.words import words_of

    crontask, _ = _read(text)
    return words_of(crontask.to_schedule(), crontask.spec.exclude or ())


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[CronTask, CronSpec]:
    """Lists come again and again, and documents seldom change."""
    found = parse_document(json.loads(text))
    assert isinstance(found, CronTask)
    # When it was created says where a lost record starts, which is for its leader to know.
    return found, spec_of(found, EPOCH)


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
    return describe(found.spec, record, Circumstances(now=now, led=True))
