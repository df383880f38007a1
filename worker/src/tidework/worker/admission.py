"""Admission: what to do with a claimed job before any child sees it. Pure.

The envelope is parsed here, once and no further than needed: the child checks the rest.
A task that we do not know, or an envelope newer than this program, is left to another worker
(a rolling upgrade is under way) for a while, then buried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any, NamedTuple

from pydantic_core import from_json

from tidework.errors import UnknownTaskError
from tidework.model.job import ENVELOPE_VERSION
from tidework.model.lease import ClaimedJob
from tidework.model.outcome import JobError, Outcome
from tidework.model.task import TaskSpec, needs_slots

FIRST_DELAY = timedelta(seconds=1)
MAX_DELAY = timedelta(seconds=60)


class Admission(NamedTuple):
    """Bounds of a claimed job: hard timeout in seconds, attempts in all."""

    spec: TaskSpec
    timeout: float
    max_attempts: int


def admit(
    claimed: ClaimedJob,
    specs: Mapping[str, TaskSpec],
    *,
    hard_timeout: float,
    unknown_grace: float,
    loop_tasks: AbstractSet[str] | None = None,
) -> Admission | Outcome:
    """What a child has to be told of the job; or its Outcome if no child can run it.

    specs: the application's tasks; hard_timeout, unknown_grace: seconds
    loop_tasks: names of those that can share an event loop; None: the worker has slots
    """
    try:
        envelope = _read(claimed.body)
        task = envelope["task"]
        layout = envelope.get("v", ENVELOPE_VERSION)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"the stored envelope cannot be read: {type(error).__name__}: {error}"
        return Outcome.bury(JobError("EnvelopeError", reason, cause="invalid"))
    if isinstance(layout, int) and layout > ENVELOPE_VERSION:
        reason = f"the envelope has version {layout}, this worker reads up to {ENVELOPE_VERSION}"
        return _wait_for_another(claimed, reason, unknown_grace)
    spec = specs.get(task) if isinstance(task, str) else None
    if spec is None:
        reason = str(UnknownTaskError(task, tuple(specs)))
        return _wait_for_another(claimed, reason, unknown_grace)
    if loop_tasks is not None and task not in loop_tasks:
        return Outcome.bury(JobError("NeedsSlots", needs_slots([spec.name]), cause="needs_slots"))
    bounds = [hard_timeout]
    if spec.timeout is not None:
        bounds.append(spec.timeout.total_seconds())
    if (own := _number(envelope, "timeout")) is not None:
        bounds.append(own)
    own_attempts = _number(envelope, "max_attempts")
    attempts = spec.retry.max_attempts if own_attempts is None else int(own_attempts)
    if claimed.releases and claimed.attempt > attempts:
        # Releases beyond the queue's cap count as attempts: nothing circles for ever.
        reason = f"released {claimed.releases} times, and all {attempts} attempts are used up"
        return Outcome.bury(JobError("Released", reason, cause="released"))
    return Admission(spec, min(bounds), attempts)


def _read(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError:
        return json.loads(body)  # slower, and reads more: what else is wrong with it is told here


def _wait_for_another(claimed: ClaimedJob, reason: str, grace: float) -> Outcome:
    """Release it for a worker that knows more, as in a rolling upgrade.

    It is a dead letter when the grace is over: the broker counts that from its first such release
    on, by its own clock. That of its producer is not ours, and a job that waited for long in a
    backlog has been looked at once.
    """
    return Outcome.release_unknown(again_after(claimed.releases), timedelta(seconds=grace), reason)


def again_after(releases: int) -> timedelta:
    """When a job may be claimed again that was released so often before."""
    # Bounded exponent: releases are capped by the queue, not here.
    growth: int = 2 ** min(releases, 10)
    return min(FIRST_DELAY * growth, MAX_DELAY)


def _number(envelope: Mapping[str, Any], name: str) -> float | None:
    found = envelope.get(name)
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return found
    return None
