"""What can be listened to, and how it is read: by the routes of the same things.

So a page needs one reader for both, and what no answer shows no event shows either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tidework.api.context import ApiContext, queue_of
from tidework.api.routes import crontasks, jobs, queues, scaling, workers
from tidework.errors import ConfigurationError
from tidework.meant import did_you_mean, listed
from tidework.model.identity import QueueName, is_job_id

MOST_ITEMS = 500
WITHOUT_NAME = ("crontasks", "queues", "workers")
OF_QUEUE = ("queue", "scaling")
KINDS = ("crontasks", "job:QUEUE/ID", "queue:QUEUE", "queues", "scaling:QUEUE", "workers")
VOLATILE = frozenset({"oldest_wait_seconds", "silent_seconds", "last_seen_at"})
"""They change by the mere passing of time: no reason for an event by themselves."""


@dataclass(frozen=True, slots=True)
class Subject:
    """kind: of what; queue and job_id where it has them. ``str`` is how a client names it."""

    namespace: str
    kind: str
    queue: str = ""
    job_id: str = ""

    def __str__(self) -> str:
        if not self.queue:
            return self.kind
        return f"{self.kind}:{self.queue}" + (f"/{self.job_id}" if self.job_id else "")


def read_subject(namespace: str, text: str) -> Subject:
    """A subject as a client names it. Raises ConfigurationError."""
    kind, _, rest = text.partition(":")
    if not rest and kind in WITHOUT_NAME:
        return Subject(namespace, kind)
    if rest and kind in OF_QUEUE:
        return Subject(namespace, kind, QueueName(namespace, rest).name)
    if rest and kind == "job":
        queue, _, job_id = rest.partition("/")
        if is_job_id(job_id):
            return Subject(namespace, kind, QueueName(namespace, queue).name, job_id)
    meant = did_you_mean(kind, [*WITHOUT_NAME, *OF_QUEUE, "job"])
    raise ConfigurationError(
        f"subject {text!r} is not one{meant or ';'} there are: {listed(KINDS)}"
    )


async def look(context: ApiContext, subject: Subject) -> BaseModel:
    """How it is now. Raises what its route raises."""
    return await _LOOKS[subject.kind](context, subject)


async def _queues(context: ApiContext, subject: Subject) -> BaseModel:
    return await queues.list_queues(context, subject.namespace, MOST_ITEMS, None)


async def _queue(context: ApiContext, subject: Subject) -> BaseModel:
    return await queues.get_queue(context, await _queue_of(context, subject))


async def _workers(context: ApiContext, subject: Subject) -> BaseModel:
    return await workers.list_workers(context, subject.namespace, None, MOST_ITEMS, None)


async def _scaling(context: ApiContext, subject: Subject) -> BaseModel:
    return await scaling.get_scaling(context, await _queue_of(context, subject))


async def _crontasks(context: ApiContext, subject: Subject) -> BaseModel:
    return await crontasks.list_crontasks(context, subject.namespace, MOST_ITEMS, None)


async def _job(context: ApiContext, subject: Subject) -> BaseModel:
    return await jobs.get_job(context, await _queue_of(context, subject), subject.job_id)


async def _queue_of(context: ApiContext, subject: Subject) -> QueueName:
    return await queue_of(context, QueueName(subject.namespace, subject.queue))


_LOOKS: dict[str, Callable[[ApiContext, Subject], Awaitable[BaseModel]]] = {
    "queues": _queues,
    "queue": _queue,
    "workers": _workers,
    "scaling": _scaling,
    "crontasks": _crontasks,
    "job": _job,
}


def without_volatile(found: Any) -> Any:
    """JSON data without what changes by itself."""
    if isinstance(found, dict):
        return {
            name: without_volatile(each) for name, each in found.items() if name not in VOLATILE
        }
    return [without_volatile(each) for each in found] if isinstance(found, list) else found
