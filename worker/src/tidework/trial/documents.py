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
from tidework.model.task import needs_slots
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

    async def one(queues: list[TaskQueue], crontasks: list[CronTask]) -> Tried:
        folder = manifests.folders[queues[0].queue_name]
        jobs = [(crontask.spec.task, crontask.spec.params) for crontask in crontasks]
        environment = environment_of(queues[0], common or {})
        async with turns:
            return await try_out(Trial(queues[0].spec.app, folder, environment, jobs))

    groups = _by_application(manifests)
    found = await asyncio.gather(*(one(*group) for group in groups))
    checked = Checked()
    for (queues, crontasks), tried in zip(groups, found, strict=True):
        for queue in queues:
            checked.sources[queue.queue_name] = tried.sources
            if tried.error:
                error = manifests.error(queue, tried.error, "spec", "app")
                (checked.broken if tried.is_certain else checked.unchecked).append(error)
            elif reason := _loop_fault(queue, tried):
                checked.broken.append(manifests.error(queue, reason, "spec", "asyncSlots"))
        for crontask, fault in zip(crontasks, tried.faults, strict=False):
            if fault is not None:
                error = manifests.error(crontask, fault.reason, "spec", fault.field)
                checked.faults.append(error)
    return checked


def _loop_fault(queue: TaskQueue, tried: Tried) -> str:
    """Why the queue's workers would not start: they have an event loop, and it has other tasks."""
    own = {task for task, name in tried.queues.items() if name == queue.metadata.name}
    found = own & tried.needs_slots if queue.spec.async_slots else set()
    return needs_slots(found) if found else ""


def _by_application(manifests: Manifests) -> list[tuple[list[TaskQueue], list[CronTask]]]:
    """TaskQueues with the same application in the same folder and environment, and their
    CronTasks: one import serves them all."""
    found: dict[tuple[object, ...], tuple[list[TaskQueue], list[CronTask]]] = {}
    of_queue = {}
    for queue in manifests.queues:
        folder, variables = manifests.folders[queue.queue_name], queue.plain_env.items()
        key = (queue.spec.app, folder, tuple(sorted(variables)))
        group = of_queue[queue.queue_name] = found.setdefault(key, ([], []))
        group[0].append(queue)
    for crontask in manifests.crontasks:
        of_queue[crontask.queue_name][1].append(crontask)
    return list(found.values())
