"""Errors as problems of RFC 9457, with codes that do not change.

A client goes by ``code``; ``detail`` is for people, and may change. One table says which error of
Tidework is which problem; what is in no row is a fault of ours, and its text stays in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from tidework.crontasks.errors import (
    AlreadySuspendedError,
    CronTaskNotFoundError,
    SuspendedByDocumentError,
)
from tidework.errors import (
    BrokerFullError,
    BrokerRefusedError,
    BrokerUnavailableError,
    ConfigurationError,
    EnvelopeError,
    ForbiddenError,
    ForeignPageError,
    IdempotencyError,
    JobNotFoundError,
    JobStateError,
    LayoutError,
    NoAnswerError,
    NotDurableError,
    ParamsError,
    QueueNotFoundError,
    ResultExpiredError,
    ScheduleError,
    StaleTermError,
    TideworkError,
    TooManyListenersError,
    UnauthenticatedError,
    UniqueConflictError,
    UnknownTaskError,
    WorkerNotFoundError,
)

MEDIA_TYPE = "application/problem+json"
TYPE = "https://tidework.dev/problems/"

logger = logging.getLogger(__name__)


class Problem(BaseModel):
    """What an error answers."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem. headers: of its answer"""

    status: int
    code: str
    title: str
    headers: Mapping[str, str] = field(default_factory=dict)


INVALID = Kind(422, "invalid_request", "The request is not valid")
INTERNAL = Kind(500, "internal_error", "The server could not answer")

# The first row whose class fits; subclasses stand above their classes.
KINDS: tuple[tuple[type[TideworkError], Kind], ...] = (
    (ResultExpiredError, Kind(410, "job_forgotten", "The job has ended and is deleted")),
    (JobNotFoundError, Kind(404, "job_not_found", "There is no such job")),
    (JobStateError, Kind(409, "job_state", "The job is in another state")),
    (IdempotencyError, Kind(422, "idempotency_conflict", "The key was used for another request")),
    (QueueNotFoundError, Kind(404, "queue_not_found", "There is no such queue")),
    (CronTaskNotFoundError, Kind(404, "crontask_not_found", "There is no such CronTask")),
    (AlreadySuspendedError, Kind(409, "already_suspended", "Somebody has it suspended")),
    (SuspendedByDocumentError, Kind(409, "suspended_by_document", "Its document suspends it")),
    (WorkerNotFoundError, Kind(404, "worker_not_found", "There is no such worker")),
    (
        UnauthenticatedError,
        Kind(401, "unauthenticated", "Sign in first", {"WWW-Authenticate": "Bearer"}),
    ),
    (ForbiddenError, Kind(403, "forbidden", "You may not do that")),
    (ForeignPageError, Kind(403, "foreign_page", "The request comes from another site")),
    (UniqueConflictError, Kind(409, "unique_conflict", "Another job holds the unique key")),
    (UnknownTaskError, Kind(422, "unknown_task", "There is no such task")),
    (ParamsError, Kind(422, "invalid_params", "The params do not fit the task")),
    (EnvelopeError, Kind(422, "invalid_job", "The job is not valid")),
    (ScheduleError, Kind(422, "invalid_schedule", "The schedule is not valid")),
    (ConfigurationError, INVALID),
    (
        TooManyListenersError,
        Kind(503, "too_many_listeners", "Too many clients listen", {"Retry-After": "30"}),
    ),
    (NoAnswerError, Kind(504, "no_answer", "The worker does not answer")),
    (StaleTermError, Kind(409, "stale_term", "Another leader has taken over")),
    (
        BrokerFullError,
        Kind(507, "redis_full", "Redis is full", {"Retry-After": "10"}),
    ),
    (
        NotDurableError,
        Kind(503, "not_durable", "Stored, but not as durably as asked", {"Retry-After": "1"}),
    ),
    (
        BrokerUnavailableError,
        Kind(503, "redis_unavailable", "Redis cannot be reached", {"Retry-After": "1"}),
    ),
    (BrokerRefusedError, Kind(503, "redis_refused", "Redis refuses to serve")),
    (LayoutError, Kind(503, "queue_layout", "The queue is of another version")),
)

OF_STATUS = {
    404: Kind(404, "not_found", "There is nothing at this address"),
    405: Kind(405, "method_not_allowed", "This address does not serve the method"),
}


def kind_of(error: TideworkError) -> Kind:
    """The kind of problem that an error is."""
    return next((kind for cls, kind in KINDS if isinstance(error, cls)), INTERNAL)


def answer(kind: Kind, detail: str, **more: Any) -> JSONResponse:
    """A problem as a response. more: further members; those that are None are left out"""
    members = {name: value for name, value in more.items() if value is not None}
    problem = Problem(
        type=f"{TYPE}{kind.code}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        code=kind.code,
        **members,
    )
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        kind.status,
        headers=dict(kind.headers),
        media_type=MEDIA_TYPE,
    )


def problem_of(error: TideworkError) -> JSONResponse:
    """An error of the table as a response."""
    return answer(kind_of(error), str(error), field=getattr(error, "field", None) or None)


def install_problems(app: FastAPI) -> None:
    """Have every error of the application answered as a problem."""
    app.add_exception_handler(TideworkError, _of_tidework)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_fault)


async def _of_tidework(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TideworkError)
    if kind_of(error) is INTERNAL:
        return await _of_fault(request, error)
    return problem_of(error)


async def _of_validation(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place, *path = (str(part) for part in first["loc"])
    name = ".".join(path)
    where = f"{place} {name}" if name else place
    message = str(first["msg"]).removeprefix("Value error, ")
    return answer(INVALID, f"{where}: {message}", field=name or None)


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = OF_STATUS.get(error.status_code)
    if kind is None:
        kind = Kind(error.status_code, "invalid_request", INVALID.title)
    return answer(kind, f"{request.method} {request.url.path}: {error.detail}")


async def _of_fault(request: Request, error: Exception) -> JSONResponse:
    logger.error(
        "%s %s failed",
        request.method,
        request.url.path,
        exc_info=error,
        extra={"event": "request_failed"},
    )
    return answer(INTERNAL, "This is a fault of Tidework; its log has the reason")
