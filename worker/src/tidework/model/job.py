"""The job and its envelope: the JSON document that any language may write.

Times in the envelope are Unix seconds (fractions allowed), ``timeout`` is seconds. A field that
is absent has its default. Unknown and reserved fields survive: they are kept in ``extra``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic_core import from_json

from tidework.errors import EnvelopeError
from tidework.model.bounds import (
    FAR_FUTURE_S,
    LONGEST_TIMEOUT_S,
    MOST_ATTEMPTS,
    SHORTEST_TIMEOUT_S,
)
from tidework.model.documents.lookalikes import is_foreign, meant_by, take_aliases
from tidework.model.documents.strict_json import decode_json, encode_json, shown
from tidework.model.identity import is_job_id, is_task_name
from tidework.model.unique import Unique, parse_unique
from tidework.model.values.params import EncodedParams, encode_params

ENVELOPE_VERSION = 1
DEFAULT_PRIORITY = 5
MAX_PARAMS_BYTES = 256 * 1024
RESERVED_FIELDS = ("group", "limit_key", "batch_id", "parent_id", "params_ref")
_LONGEST_DELAY = 7000 * 31_557_600.0


class JobState(StrEnum):
    """A job is in exactly one of these."""

    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"


FINISHED_STATES = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED})


class Job(NamedTuple):
    """One request to run a task.

    available_at: Unix seconds, None = at once; max_attempts, timeout: None = the task's own
    delay:        instead of available_at, seconds from when the queue takes it, by the queue's own
                  clock, whatever the producer's shows; below 0: it has waited so long already.
                  The envelope does not have it: the queue knows when the job is due.
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
    extra: Mapping[str, Any] = MappingProxyType({})
    delay: float | None = None

    @property
    def unions(self) -> str:
        """How unions in the params are to be read, see wire_schema.Unions."""
        said = self.extra.get("unions", "")
        return said if isinstance(said, str) else ""

    def encode(self, *, max_params_bytes: int = MAX_PARAMS_BYTES) -> bytes:
        """The envelope as compact JSON bytes.

        Raises EnvelopeError if params are not JSON or longer than the limit, or for a delay that
        leads beyond what a time may be.
        """
        if self.delay is not None and not -FAR_FUTURE_S < self.delay < _LONGEST_DELAY:
            raise EnvelopeError(
                f"{self.delay:g} s is too long; use at most 7000 years", field="delay"
            )
        found = self.params
        params = found.raw if type(found) is EncodedParams else encode_params(found)
        if len(params) > max_params_bytes:
            raise _too_long(len(params), max_params_bytes)
        if self.unique is None and self.trace is None and not self.extra:
            return self._plain_head() + params + b"}"
        head = encode_json(self._head(), field="")
        return head[:-1] + b',"params":' + params + b"}"

    def _head(self) -> dict[str, Any]:
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
        return head

    def _plain_head(self) -> bytes:
        """The same up to the value of params, of a job without the rarer fields."""
        middle, end = _same_of_many(self.task, self.priority, self.max_attempts, self.timeout)
        at = self.created_at
        when = repr(at) if type(at) is float and math.isfinite(at) else _json(at)
        if self.available_at is not None:
            when = f'{when},"available_at":{_json(self.available_at)}'
        head = f'{{"v":{ENVELOPE_VERSION},"id":{encode_basestring(self.id)}{middle}{when}{end}'
        try:
            return head.encode()
        except UnicodeEncodeError as error:
            raise EnvelopeError(f"not JSON data: {error}; convert it first") from error


@lru_cache(maxsize=1024, typed=True)
def _same_of_many(
    task: str, priority: int, max_attempts: int | None, timeout: float | None
) -> tuple[str, str]:
    """What jobs of a task have in common, as it stands in their envelopes, in two pieces."""
    urgency = "" if priority == DEFAULT_PRIORITY else f',"priority":{_json(priority)}'
    attempts = "" if max_attempts is None else f',"max_attempts":{_json(max_attempts)}'
    bound = "" if timeout is None else f',"timeout":{_json(timeout)}'
    before = f',"task":{_json(task)}{urgency},"created_at":'
    return before, f'{attempts}{bound},"params":'


def _json(value: str | float) -> str:
    return encode_json(value, field="").decode()


def _too_long(size: int, limit: int) -> EnvelopeError:
    return EnvelopeError(
        f"{size} bytes of JSON, the limit is {limit}; "
        "store the data elsewhere and pass a reference to it",
        field="params",
    )


class Enqueued(NamedTuple):
    """What became of a job: inserted, or ``id`` is of the job that stands for it: itself, known
    already, or the holder of its unique key."""

    id: str
    inserted: bool


class DecodedJob(NamedTuple):
    """What an envelope that anyone may have written says.

    named:   it names the job's id itself
    whole:   nothing had to be added or called otherwise: it can be stored as it came
    unclear: unknown fields -> the known one that each may have been meant to be
    """

    job: Job
    named: bool
    whole: bool
    unclear: Mapping[str, str]


def decode_job(raw: bytes, *, new_id: str, now: float) -> Job:
    """Read an envelope written by anyone.

    new_id: the id for a document without one; now: Unix seconds, for one without created_at.
    Raises EnvelopeError naming the field.
    """
    return decode_document(raw, new_id=new_id, now=now).job


def decode_document(raw: bytes, *, new_id: str, now: float) -> DecodedJob:
    """As ``decode_job``, and what else is to be known of it. Raises EnvelopeError."""
    document = _object(raw)
    foreign = is_foreign(document)
    if foreign:
        take_aliases(document)
    get = document.get
    named = get("id") is not None
    added = not named or get("created_at") is None
    renamed = foreign or [] in (get("params"), get("trace"))
    unclear = meant_by(document, foreign=foreign)
    try:
        job = _read(document, new_id, now)
    except NewerEnvelopeError:
        raise
    except EnvelopeError as error:
        if not unclear:
            raise
        told = ", ".join(f"{shown(name)} looks like {meant!r}" for name, meant in unclear.items())
        raise EnvelopeError(f"{error.reason} ({told})", field=error.field) from error
    # Written compactly params are hardly longer than in the document: most need not be written.
    if len(raw) > MAX_PARAMS_BYTES:
        size = len(encode_json(job.params, field="params"))
        if size > MAX_PARAMS_BYTES:
            raise _too_long(size, MAX_PARAMS_BYTES)
    return DecodedJob(job, named, not (added or renamed), unclear)


def _object(raw: bytes) -> dict[str, Any]:
    found = decode_json(raw)
    if not isinstance(found, dict):
        raise EnvelopeError("the document has to be a JSON object")
    return found


def decode_stored_job(raw: bytes) -> Job:
    """Read the envelope of a job that is in a queue, hence was checked by whoever put it there.

    Fields are checked all the same, in case it was not; JSON is read by a faster reader, which
    takes the last of two equal keys, and a number beyond a double for infinity.
    Raises EnvelopeError naming the field.
    """
    try:
        document = from_json(raw, allow_inf_nan=False)
    except ValueError:
        # It may be valid for all that: a longer integer, a deeper document than this one reads.
        document = decode_json(raw)
    return _read(document, "unnamed", 0.0)


def _read(document: object, new_id: str, now: float) -> Job:
    """``document`` is taken apart."""
    if not isinstance(document, dict):
        raise EnvelopeError("the document has to be a JSON object")
    take = document.pop
    version = take("v", ENVELOPE_VERSION)
    if version != ENVELOPE_VERSION or type(version) is not int:
        _check_version(version)
    return Job(
        _job_id(take("id", None), new_id),
        _task_name(take("task", None)),
        _params(take("params", None)),
        _integer(take("priority", None), "priority", DEFAULT_PRIORITY, 0, 9),
        _number(take("created_at", None), "created_at", 0, FAR_FUTURE_S, now),
        _optional_number(take("available_at", None), "available_at", 0, FAR_FUTURE_S),
        _optional_integer(take("max_attempts", None), "max_attempts", 1, MOST_ATTEMPTS),
        _optional_number(take("timeout", None), "timeout", SHORTEST_TIMEOUT_S, LONGEST_TIMEOUT_S),
        parse_unique(take("unique", None)),
        _trace(take("trace", None)),
        document,
    )


def decode_newer_job(raw: bytes, *, new_id: str, now: float) -> tuple[Job, bytes, bool]:
    """What this version can read of a later version's envelope, the bytes to store, and whether it
    names the job's id itself.

    ``v``, ``id``, ``task``, ``priority``, ``available_at`` and ``created_at`` keep their meaning
    in every version, so that older workers can let such a job wait for a newer one. The rest
    stays as it came; an id and a time are added where they are missing. Raises EnvelopeError.
    """
    document = _object(raw)
    get = document.get
    named = get("id") is not None
    job = Job(
        id=_job_id(get("id"), new_id),
        task=_task_name(get("task")),
        params={},
        priority=_integer(get("priority"), "priority", DEFAULT_PRIORITY, 0, 9),
        created_at=_number(get("created_at"), "created_at", 0, FAR_FUTURE_S, now),
        available_at=_optional_number(get("available_at"), "available_at", 0, FAR_FUTURE_S),
    )
    if named and get("created_at") is not None:
        return job, raw, named
    whole = {**document, "id": job.id, "created_at": job.created_at}
    return job, encode_json(whole, field=""), named


def _check_version(found: object) -> None:
    if type(found) is not int or found < 1:
        raise EnvelopeError(f"{shown(found)} is not a version; use {ENVELOPE_VERSION}", field="v")
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
    if found is None or found == []:  # PHP writes an empty object so
        return {}
    if not isinstance(found, dict):
        raise EnvelopeError("has to be a JSON object of named parameters", field="params")
    return found


def _trace(found: object) -> Mapping[str, str] | None:
    if found is None or found == []:
        return None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise EnvelopeError("has to be a JSON object of strings", field="trace")
    return found


def _optional_number(found: object, name: str, low: float, high: float) -> float | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise EnvelopeError(f"{shown(found)} is not a number", field=name)
    if not low <= found <= high:
        raise EnvelopeError(f"{shown(found)} has to lie between {low:g} and {high:g}", field=name)
    return float(found)


def _number(found: object, name: str, low: float, high: float, default: float) -> float:
    number = _optional_number(found, name, low, high)
    return default if number is None else number


def _optional_integer(found: object, name: str, low: int, high: int) -> int | None:
    if found is None:
        return None
    if type(found) is not int or not low <= found <= high:
        raise EnvelopeError(
            f"{shown(found)} has to be a whole number from {low} to {high}", field=name
        )
    return found


def _integer(found: object, name: str, default: int, low: int, high: int) -> int:
    number = _optional_integer(found, name, low, high)
    return default if number is None else number
