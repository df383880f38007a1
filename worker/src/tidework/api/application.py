"""The application: every route under /api/v1, errors as problems, OpenAPI beside them.

It can be served by itself, or mounted into another Starlette, FastAPI or Django application. It
keeps nothing between two requests: whatever lasts lies in Redis.
"""

from __future__ import annotations

from functools import partial
from importlib.metadata import version as version_of
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from tidework.access.guard import Guard
from tidework.access.recording import Recorder
from tidework.access.ways import Ways
from tidework.api.auth_pages import add_sign_in
from tidework.api.context import ApiContext
from tidework.api.events.hub import Hub
from tidework.api.events.subjects import look
from tidework.api.paging import refuse_unknown_parameters
from tidework.api.problems import MEDIA_TYPE, Problem, install_problems, problem_of
from tidework.api.routes import (
    audit,
    crontasks,
    dead,
    events,
    jobs,
    metrics,
    queues,
    scaling,
    stats,
    why,
    workers,
)

PREFIX = "/api/v1"
ROUTERS: tuple[APIRouter, ...] = (
    audit.router,
    queues.router,
    jobs.router,
    dead.router,
    stats.router,
    why.router,
    workers.router,
    scaling.router,
    crontasks.router,
    events.router,
)

AT_ROOT: tuple[APIRouter, ...] = (metrics.router,)
"""Where their clients expect them."""

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "The request is refused", "content": {MEDIA_TYPE: {}}},
    "5XX": {"model": Problem, "description": "It cannot be served", "content": {MEDIA_TYPE: {}}},
}


class _Guarded(FastAPI):
    """With guard and record outermost: no route, error or mounted application is beside them."""

    def build_middleware_stack(self) -> ASGIApp:
        """Starlette's, and these two around it."""
        context: ApiContext = self.state.context
        recorded = Recorder(super().build_middleware_stack(), context.broker, context.clock)
        return Guard(recorded, problem_of, context.origins)


def create_api(context: ApiContext) -> FastAPI:
    """The API over a broker. Its owner closes the broker."""
    app = _Guarded(
        title="Tidework",
        version=version_of("tidework"),
        openapi_url=f"{PREFIX}/openapi.json",
        # Their pages load scripts from a foreign host.
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        dependencies=[Depends(refuse_unknown_parameters)],
        responses=_PROBLEMS,
    )
    app.state.context = context
    app.state.hub = Hub(partial(look, context))
    install_problems(app)
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    for router in AT_ROOT:
        app.include_router(router)
    if isinstance(context.access, Ways) and context.access.sign_in is not None:
        add_sign_in(app, context.access.sign_in)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
