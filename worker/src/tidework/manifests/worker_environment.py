"""What a TaskQueue says to its workers, as the variables that their settings are read from.

The same for a local process of `tidework dev` and for a container: whoever starts the worker adds
its name, where Redis is, and the queue's own variables beneath these, which always win.
"""

from __future__ import annotations

import json

from tidework.manifests.taskqueue import TaskQueue

APP_VERSION_VARIABLE = "TIDEWORK_APP_VERSION"
"""By which a worker says with which version of the application it was started. Whoever starts it
knows that."""


def worker_environment(queue: TaskQueue) -> dict[str, str]:
    """TIDEWORK_* variables of WorkerSettings, by name."""
    spec = queue.spec
    limit = spec.memory.limit_mib
    return {
        "TIDEWORK_NAMESPACE": queue.metadata.namespace,
        "TIDEWORK_APP": spec.app,
        "TIDEWORK_QUEUE": json.dumps([queue.metadata.name]),
        # Both, also that which is not given: the environment below may hold another number.
        "TIDEWORK_SLOTS": "" if spec.async_slots else str(spec.places),
        "TIDEWORK_ASYNC_SLOTS": str(spec.async_slots),
        "TIDEWORK_HARD_TIMEOUT_SECONDS": str(spec.hard_timeout_seconds),
        "TIDEWORK_CANCEL_GRACE_SECONDS": str(spec.cancel_grace_seconds),
        "TIDEWORK_MAX_GRACE_SECONDS": str(spec.max_grace_seconds),
        "TIDEWORK_LEASE_SECONDS": str(spec.lease_seconds),
        "TIDEWORK_RECYCLE_JOBS": str(spec.recycle.jobs),
        "TIDEWORK_RECYCLE_MEMORY_MIB": str(spec.recycle.memory_mib),
        "TIDEWORK_MEMORY_MOST_PERCENT": str(spec.memory.most_percent),
        **({} if limit is None else {"TIDEWORK_MEMORY_LIMIT_MIB": str(limit)}),
        "TIDEWORK_KEEP_SUCCEEDED_SECONDS": str(spec.retention.succeeded_seconds),
        "TIDEWORK_KEEP_DEAD_SECONDS": str(spec.retention.dead_seconds),
        "TIDEWORK_KEEP_COUNT": str(spec.retention.count),
    }
