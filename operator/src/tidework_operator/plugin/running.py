"""``kubectl tidework run``: ask for a manual run of a CronTask, and see it enqueued.

The request is an annotation with a fresh nonce: the operator enqueues one job per nonce, whose id
follows from the CronTask's uid and the nonce. The spec is never edited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from tidework.clock import Clock
from tidework.errors import TideworkError
from tidework.loop import Loop
from tidework.manifests import CronTask, parse_document
from tidework.scheduler.documents import spec_of
from tidework.scheduler.spec import RUN_NOW_ANNOTATION, manual_job
from tidework_operator.cluster import Cluster, Kind, Object
from tidework_operator.conditions import find_condition
from tidework_operator.plugin.session import FIELD_MANAGER

LOOK_EVERY = timedelta(seconds=0.5)


@dataclass(frozen=True, slots=True)
class ManualRequest:
    """A run that was asked for. ``job``: the id that its job has, or will have."""

    namespace: str
    name: str
    nonce: str
    job: str


class NotServedError(TideworkError):
    """The operator does not serve the CronTask, so nothing would run."""


async def ask_for_run(cluster: Cluster, found: Object, nonce: str, clock: Clock) -> ManualRequest:
    """Annotate the CronTask. Raises NotServedError, ManifestErrors or ClusterError."""
    metadata = found["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    ready = find_condition(found.get("status"), "Ready")
    if ready is not None and ready["status"] == "False":
        raise NotServedError(
            f"CronTask {namespace}/{name} is not served ({ready['reason']}), so it would not run "
            f"before that is corrected: {ready.get('message', '')}"
        )
    document = parse_document(found, namespace=namespace, file=f"CronTask {namespace}/{name}")
    assert isinstance(document, CronTask)
    now = clock.now()
    job = manual_job(spec_of(document, now), nonce, now)
    patch = {"metadata": {"annotations": {RUN_NOW_ANNOTATION: nonce}}}
    await cluster.patch(Kind.CRON_TASK, namespace, name, patch, manager=FIELD_MANAGER)
    return ManualRequest(namespace, name, nonce, job.id)


def outlook(found: Object, request: ManualRequest) -> str:
    """What will happen, in words."""
    spec: Mapping[str, Any] = found.get("spec") or {}
    words = (
        f"CronTask {request.namespace}/{request.name} runs now: task {spec['task']} is enqueued "
        f"into queue {spec['queue']} as job {request.job}, beside its schedule"
    )
    ready = find_condition(found.get("status"), "Ready")
    # By its document, or by a person, which the operator tells.
    if spec.get("suspend") or (ready is not None and ready.get("reason") == "Suspended"):
        words += ", although it is suspended"
    if ready is None:
        words += ". No operator has looked at this CronTask yet: it waits for one"
    return words


async def wait_enqueued(cluster: Cluster, request: ManualRequest, timeout: timedelta) -> None:
    """Wait until the operator has enqueued it. Raises ClickException if it does not in time."""

    async def look() -> timedelta:
        found = await cluster.get(Kind.CRON_TASK, request.namespace, request.name)
        if found is None:
            raise click.ClickException(f"CronTask {request.name} was deleted meanwhile")
        run = (found.get("status") or {}).get("runNow") or {}
        if run.get("nonce") == request.nonce:
            loop.stop()
        return LOOK_EVERY

    loop = Loop("wait", look)
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            await loop.run()
    except TimeoutError as error:
        raise click.ClickException(
            f"not seen enqueued within {timeout.total_seconds():g} s; `kubectl describe crontask "
            f"-n {request.namespace} {request.name}` shows its state"
        ) from error
