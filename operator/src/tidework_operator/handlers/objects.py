"""What kopf is asked to tell: events of TaskQueues and CronTasks, nothing that leaves a trace.

``on.event`` needs no finalizer, no annotation and no task per object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import kopf

from tidework_operator.cluster import Kind
from tidework_operator.inventory import Inventory

Access = Callable[[], Awaitable[Mapping[str, Any]]]
"""How to get into the API server: fields of kopf.ConnectionInfo."""


def registry_of(inventory: Inventory, access: Access) -> kopf.OperatorRegistry:
    """The handlers; each only hands on what it was told."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(**await access())

    for kind in (Kind.TASK_QUEUE, Kind.CRON_TASK):
        group, _, version = kind.value.api_version.partition("/")

        @kopf.on.event(group, version, kind.value.plural, param=kind, registry=registry)
        async def note(*, event: kopf.RawEvent, param: Any = None, **_: Any) -> None:
            inventory.note(param, dict(event["object"]), deleted=event["type"] == "DELETED")

    return registry
