"""The job and its envelope: the JSON document that any language may write.

Times in the envelope are Unix seconds (fractions allowed), ``timeout`` is seconds. A field that
is absent has its default. Unknown and reserved fields survive: they are kept in ``extra``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tidework.errors import EnvelopeError
from tidework.model.identity import is_job_id, is_task_name
from tidework.model.strict_json import decode_json, encode_json, refuse_depth, shown
from tidework.model.unique import Unique, parse_unique

ENVELOPE_VERSION = 1
DEFAULT_PRIORITY = 5
MAX_PARAMS_BYTES = 256 * 1024
RESERVED_FIELDS = ("group", "limit_key", "batch_id", "parent_id", "params_ref")
_FAR_FUTURE = 253_402_300_800.0  # the year 10000


class JobState(StrEnum):
    """A job is in exactly one of these."""

    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"


FINISHED_STATES = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Job:
    """One request to run a task.

    available_at: Unix seconds, None = at once; max_attempts, timeout: None = the task's own
    """

    id: str
    task: str
    params: Mapping[str, Any]
    priority: int = DEFAULT_PRIORITY
    created_at: float = 0.0
    available_at: float | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    unique: Unique | None = None
    trace: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, *, max_params_bytes: int = MAX_PARAMS_BYTES) -> bytes:
        """The envelope as compact JSON bytes.

        Raises EnvelopeError if params are not JSON or longer than the limit.
        """
        params = encode_json(self.params, field="params")
        try:
            refuse_depth([self.params], params)  # a level for the document
        except ValueError as error:
            raise EnvelopeError(str(error), field="params") from error
        if len(params) > max_params_bytes:
            raise EnvelopeError(
                f"{len(params)} bytes of JSON, the limit is {max_params_bytes}; "
                "store the data elsewhere and pass a reference to it",
                field="params",
            )
        head: dict[str, Any] = {"v": ENVELOPE_VERSION, "id": self.id, "task": self.task}
        if self.priority != DEFAULT_PRIORITY:
            head["priority"] = self.priority
        head["created_at"] = self.created_at
        for name in ("available_at", "max_attempts", "timeout", "trace"):
            value = getattr(self, name)
            if value is not None:
                head[name] = value
        if self.unique is not None:
            head["unique"] = self.unique.document()
        head.update(self.extra)
        text = encode_json(head, field="")
        return text[:-1] + b',"params":' + params + b"}"


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of a job: inserted, or ``id`` is of the job that stands for it: itself, known
    already, or the holder of its unique key."""

    id: str
    inserted: bool


def decode_job(raw: bytes, *, new_id: str, now: float) -> Job:
    """Read an envelope written by anyone.

    new_id: the id for a document without one; now: Unix seconds, for one without created_at.
    Raises EnvelopeError naming the field.
    """
    document = decode_json(raw)
    if not isinstance(document, dict):
        raise EnvelopeError("the document has to be a JSON object")
    known = dict(document)
    _check_version(known.pop("v", ENVELOPE_VERSION))
    job = Job(
        id=_job_id(known.pop("id", None), new_id),
        task=_task_name(known.pop("task", None)),
        params=_params(known.pop("params", None)),
        priority=_integer(known, "priority", DEFAULT_PRIORITY, 0, 9),
        created_at=_number(known, "created_at", 0, _FAR_FUTURE, now),
        available_at=_optional_number(known, "available_at", 0, _FAR_FUTURE),
        max_attempts=_optional_integer(known, "max_attempts", 1, 1000),
        timeout=_optional_number(known, "timeout", 0.001, 31_536_000),
        unique=parse_unique(known.pop("unique", None)),
        trace=_trace(known.pop("trace", None)),
        extra=known,
    )
    # Written compactly params are hardly longer than in the document: most need not be written.
    size = len(encode_json(job.params, field="params")) if len(raw) > MAX_PARAMS_BYTES else 0
    if size > MAX_PARAMS_BYTES:
        raise EnvelopeError(
            f"{size} bytes of JSON, the limit is {MAX_PARAMS_BYTES}; "
            "store the data elsewhere and pass a reference to it",
            field="params",
        )
    return job


def decode_newer_job(raw: bytes, *, new_id: str, now: float) -> tuple[Job, bytes]:
    """What this version can read of a later version's envelope, and the bytes to store.

    ``v``, ``id``, ``task``, ``priority``, ``available_at`` and ``created_at`` keep their meaning
    in every version, so that older workers can let such a job wait for a newer one. The rest
    stays as it came; an id and a time are added where they are missing. Raises EnvelopeError.
    """
    document = decode_json(raw)
    if not isinstance(document, dict):
        raise EnvelopeError("the document has to be a JSON object")
    known = dict(document)
    job = Job(
        id=_job_id(known.get("id"), new_id),
        task=_task_name(known.get("task")),
        params={},
        priority=_integer(known, "priority", DEFAULT_PRIORITY, 0, 9),
        created_at=_number(known, "created_at", 0, _FAR_FUTURE, now),
        available_at=_optional_number(known, "available_at", 0, _FAR_FUTURE),
    )
    if document.get("id") is not None and document.get("created_at") is not None:
        return job, raw
    whole = {**document, "id": job.id, "created_at": job.created_at}
    return job, encode_json(whole, field="")


def _check_version(found: object) -> None:
    if type(found) is not int or found < 1:
        raise EnvelopeError(f"{shown(found)} is no version; use {ENVELOPE_VERSION}", field="v")
    if found > ENVELOPE_VERSION:
        raise NewerEnvelopeError(found)


class NewerEnvelopeError(EnvelopeError):
    """The envelope is of a later version than this program: a newer worker may serve it."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(
            f"version {shown(version)} is newer than {ENVELOPE_VERSION}, which this program "
            "serves; upgrade the workers",
            field="v",
        )


def _job_id(found: object, new_id: str) -> str:
    if found is None:
        return new_id
    if not isinstance(found, str) or not is_job_id(found):
        raise EnvelopeError(
            "has to be 1 to 128 characters of A-Z a-z 0-9 _ . : - starting with a letter or digit",
            field="id",
        )
    return found


def _task_name(found: object) -> str:
    if not isinstance(found, str) or not is_task_name(found):
        raise EnvelopeError(
            "has to be the task's name, 1 to 200 characters of A-Z a-z 0-9 _ . : / -", field="task"
        )
    return found


def _params(found: object) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise EnvelopeError("has to be a JSON object of named parameters", field="params")
    return found


def _trace(found: object) -> Mapping[str, str] | None:
    if found is None:
        return None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise EnvelopeError("has to be a JSON object of strings", field="trace")
    return found


def _optional_number(known: dict[str, Any], name: str, low: float, high: float) -> float | None:
    found = known.pop(name, None)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise EnvelopeError(f"{shown(found)} is no number", field=name)
    if not low <= found <= high:
        raise EnvelopeError(f"{shown(found)} has to lie between {low:g} and {high:g}", field=name)
    return float(found)


def _number(known: dict[str, Any], name: str, low: float, high: float, default: float) -> float:
    found = _optional_number(known, name, low, high)
    return default if found is None else found


def _optional_integer(known: dict[str, Any], name: str, low: int, high: int) -> int | None:
    found = known.pop(name, None)
    if found is None:
        return None
    if type(found) is not int or not low <= found <= high:
        raise EnvelopeError(
            f"{shown(found)} has to be a whole number from {low} to {high}", field=name
        )
    return found


def _integer(known: dict[str, Any], name: str, default: int, low: int, high: int) -> int:
    found = _optional_integer(known, name, low, high)
    return default if found is None else found
