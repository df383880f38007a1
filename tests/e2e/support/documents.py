"""TaskQueues and CronTasks of the scenarios, as JSON data."""

from __future__ import annotations

from typing import Any

VERSION = "tidework.dev/v1alpha1"

Document = dict[str, Any]

AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
"""A behavior that shrinks as soon as the load does."""


def task_queue(name: str, image: str | None, **spec: Any) -> Document:
    """A TaskQueue that serves the errands, with more of its spec."""
    given = {} if image is None else {"image": image}
    return {
        "apiVersion": VERSION,
        "kind": "TaskQueue",
        "metadata": {"name": name},
        "spec": {"app": "errands.tasks"} | given | spec,
    }


def cron_task(name: str, queue: str, task: str, **spec: Any) -> Document:
    """A CronTask with more of its spec, such as `every` or `schedule`."""
    return {
        "apiVersion": VERSION,
        "kind": "CronTask",
        "metadata": {"name": name},
        "spec": {"queue": queue, "task": task} | spec,
    }
