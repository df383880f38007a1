"""What the command line can know of a job that is enqueued by name, and says while somebody reads.

An application that is named is asked. Without one, workers are: each has announced its tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidework.app import Task
from tidework.app_loading import load_app
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.errors import BrokerError, ParamsError
from tidework.meant import did_you_mean, listed
from tidework.model.identity import QueueName
from tidework.settings import Settings


def task_of(app: str, name: str, params: Mapping[str, Any]) -> Task[..., Any]:
    """The task of the application, which takes the params.

    Raises AppImportError, click.BadParameter for a task or params that it does not know.
    """
    tasks = load_app(app).tasks
    found = tasks.get(name)
    if found is None:
        names = sorted(tasks)
        raise click.BadParameter(
            f"app {app!r} has no task {name!r}{did_you_mean(name, names) or ';'} it has: "
            f"{listed(names)}. To enqueue it all the same, before the version that has it is "
            "there, leave --app out",
            param_hint="TASK",
        )
    try:
        found.signature.to_arguments(params)
    except ParamsError as error:
        raise click.BadParameter(error.reason, param_hint="PARAMS") from error
    return found


def warning_of(settings: Settings, queue: str, task: str) -> str:
    """Why a job of this task may wait in vain in this queue, '' if a worker has announced it."""
    broker = connect_blocking(settings.redis_url)
    name = QueueName(settings.namespace, queue)
    try:
        known = drive(broker.tasks(name))
        if task in known:
            return ""
        if known:
            return (
                f"no worker of queue {queue!r} has announced a task {task!r}"
                f"{did_you_mean(task, known) or '.'} The job waits for one that knows it, 10 "
                "minutes unless the workers have another grace; then it is a dead letter"
            )
        return (
            f"no worker has served queue {queue!r} so far{_meant_queue(broker, name) or '.'} "
            "The job waits until one does"
        )
    finally:
        drive(broker.close())


def _meant_queue(broker: Any, queue: QueueName) -> str:
    """A queue with workers that is called like this one; '' also if we may not list them."""
    try:
        others = [found for found in drive(broker.queues()) if found.namespace == queue.namespace]
        served = [other.name for other in others if drive(broker.tasks(other))]
    except BrokerError:
        return ""
    return did_you_mean(queue.name, served)
