"""What a command gets of its job: variables, and a document on standard input. Pure.

The document is the envelope as it is stored, its params checked, with what only the worker knows:
which attempt it is, where, and until when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidework.model.command import Command
from tidework.model.current import CurrentJob
from tidework.model.documents.strict_json import encode_json
from tidework.model.job import ENVELOPE_VERSION, Job
from tidework.settings import Settings, WorkerSettings

_OF_THE_WORKER = frozenset(
    f"TIDEWORK_{name.upper()}"
    for name in WorkerSettings.model_fields.keys() - Settings.model_fields
)
"""Settings that a worker has and a client has not: they are about the worker, not the job."""


def variables_of(
    command: Command, running: CurrentJob, worker: Mapping[str, str]
) -> dict[str, str]:
    """The command's whole environment.

    worker: that of the worker, which goes on to the command but for the worker's own settings
    """
    return {
        **{name: value for name, value in worker.items() if name not in _OF_THE_WORKER},
        **command.env,
        "TIDEWORK_JOB_ID": running.id,
        "TIDEWORK_TASK": running.task,
        "TIDEWORK_QUEUE": running.queue,
        "TIDEWORK_NAMESPACE": running.namespace,
        "TIDEWORK_ATTEMPT": str(running.attempt),
        "TIDEWORK_MAX_ATTEMPTS": str(running.max_attempts),
        "TIDEWORK_DEADLINE": str(int(running.deadline.timestamp())),
    }


def document_of(job: Job, params: Mapping[str, Any], running: CurrentJob, timeout: float) -> bytes:
    """A line of JSON. Raises EnvelopeError if the params are no JSON.

    params: the job's, checked; timeout: seconds of this attempt
    """
    document: dict[str, Any] = {
        **job.extra,
        "v": ENVELOPE_VERSION,
        "id": job.id,
        "task": job.task,
        "queue": running.queue,
        "namespace": running.namespace,
        "params": params,
        "attempt": running.attempt,
        "max_attempts": running.max_attempts,
        "timeout": timeout,
        "deadline": round(running.deadline.timestamp(), 3),
        "priority": job.priority,
        "created_at": job.created_at,
    }
    if job.available_at is not None:
        document["available_at"] = job.available_at
    if job.unique is not None:
        document["unique"] = job.unique.document()
    if job.trace is not None:
        document["trace"] = job.trace
    return encode_json(document, field="") + b"\n"
