"""What a request works with: the broker, the namespace that is served, who may call.

Routes ask for ``Context``, ``Queue``, ``CronTaskInPath`` and ``CallerOfRequest`` as parameters. A
read never makes a queue known: one that nobody has opened is a problem of status 404.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from tidework.access.access import Access
from tidework.access.caller import Caller
from tidework.access.redaction import USUAL, Redaction
from tidework.broker.broker import Broker
from tidework.clock import Clock, SystemClock
from tidework.crontasks.found import FoundCronTask, find_crontask
from tidework.errors import QueueNotFoundError
from tidework.model.identity import QueueName

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""A DNS label; see tidework.model.identity."""


@dataclass(frozen=True, slots=True)
class ApiContext:
    """namespace: the one that is served when a request names no other

    origins: of pages that may act besides those of the requested host (access/guard.py)
    redaction: which values no answer shows
    """

    broker: Broker
    access: Access
    namespace: str = "default"
    origins: frozenset[str] = frozenset()
    redaction: Redaction = USUAL
    clock: Clock = field(default_factory=SystemClock)


def context_of(request: Request) -> ApiContext:
    """The context that the application was made with."""
    found = request.app.state.context
    assert isinstance(found, ApiContext)
    return found


Context = Annotated[ApiContext, Depends(context_of)]


def namespace_of(
    context: Context,
    namespace: Annotated[
        str | None,
        Query(pattern=NAME_PATTERN, description="Another namespace than the one that is served."),
    ] = None,
) -> str:
    """The namespace that a request is about."""
    return context.namespace if namespace is None else namespace


Namespace = Annotated[str, Depends(namespace_of)]


def queue_name_of(
    namespace: Namespace,
    queue: Annotated[str, Path(pattern=NAME_PATTERN, description="Name of the queue.")],
) -> QueueName:
    """The queue that a path names, whether or not it exists."""
    return QueueName(namespace, queue)


QueueInPath = Annotated[QueueName, Depends(queue_name_of)]


async def queue_of(context: Context, queue: QueueInPath) -> QueueName:
    """The queue that a path names. Raises QueueNotFoundError if nobody has opened it."""
    known = await context.broker.queues()
    if queue not in known:
        here = [name.name for name in known if name.namespace == queue.namespace]
        raise QueueNotFoundError(queue.name, queue.namespace, tuple(here))
    return queue


Queue = Annotated[QueueName, Depends(queue_of)]


async def crontask_of(
    context: Context,
    namespace: Namespace,
    crontask: Annotated[str, Path(pattern=NAME_PATTERN, description="Name of the CronTask.")],
) -> FoundCronTask:
    """The CronTask that a path names. Raises CronTaskNotFoundError."""
    return await find_crontask(context.broker, namespace, crontask)


CronTaskInPath = Annotated[FoundCronTask, Depends(crontask_of)]


def caller_of(request: Request) -> Caller:
    """Who makes the request: of a route that ``requires`` a permission."""
    found = request.state.caller
    assert isinstance(found, Caller)
    return found


CallerOfRequest = Annotated[Caller, Depends(caller_of)]
