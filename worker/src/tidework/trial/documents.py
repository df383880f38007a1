"""Documents and the applications that they name: do the tasks exist, do they take the params?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidework.errors import ManifestError
from tidework.manifests import CronTask, Manifests, TaskQueue
from tidework.manifests.worker_environment import worker_environment
from tidework.model.identity import QueueName
from tidework.trial.process import Trial, Tried, try_out

AT_ONCE = 2
"""Applications that are loaded at the same time."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the applications say to the documents.

    faults:    CronTasks whose job would not run
    broken:    TaskQueues whose application loads nowhere
    unchecked: TaskQueues whose application does not load here; it may where its workers run
    sources:   queue -> files of its application below its folder, None if it did not load
    """

    faults: list[ManifestError] = field(default_factory=list)
    broken: list[ManifestError] = field(default_factory=list)
    unchecked: list[ManifestError] = field(default_factory=list)
    sources: dict[QueueName, frozenset[str] | None] = field(default_factory=dict)


def environment_of(queue: TaskQueue, common: Mapping[str, str]) -> dict[str, str]:
    """Of the queue's workers on this machine; ``common``: of the workers of all queues."""
    return {**os.environ, **common, **queue.plain_env, **worker_environment(queue)}


async def check_documents(manifests: Manifests, common: Mapping[str, str] | None = None) -> Checked:
    """Load each application in a process of its own, where the workers of its queue start."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(queue: TaskQueue, crontasks: list[CronTask]) -> Tried:
        folder = manifests.folders[queue.queue_name]
        jobs = [(crontask.spec.task, crontask.spec.params) for crontask in crontasks]
        environment = environment_of(queue, common or {})
        async with turns:
            return await try_out(Trial(queue.spec.app, folder, environment, jobs))

    of_queue = {
        queue.queue_name: [c for c in manifests.crontasks if c.queue_name == queue.queue_name]
        for queue in manifests.queues
    }
    found = await asyncio.gather(
        *(one(queue, of_queue[queue.queue_name]) for queue in manifests.queues)
    )
    checked = Checked()
    for queue, tried in zip(manifests.queues, found, strict=True):
        checked.sources[queue.queue_name] = tried.sources
        if tried.error:
            error = manifests.error(queue, tried.error, "spec", "app")
            (checked.broken if tried.is_certain else checked.unchecked).append(error)
        for crontask, fault in zip(of_queue[queue.queue_name], tried.faults, strict=False):
            if fault is not None:
                error = manifests.error(crontask, fault.reason, "spec", fault.field)
                checked.faults.append(error)
    return checked
