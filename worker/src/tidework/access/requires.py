"""A route says what permission it needs: ``dependencies=[Depends(requires(Permission.VIEWER))]``.

A test asks every route of the application for such a line (tests/unit/api/test_routes.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Request

from tidework.access.caller import Caller, Permission
from tidework.errors import ForbiddenError


def requires(permission: Permission) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency that identifies the caller, and refuses one without the permission."""

    async def check(request: Request) -> Caller:
        context = request.app.state.context
        caller: Caller = await context.access.identify(request)
        namespace = request.query_params.get("namespace") or context.namespace
        request.state.caller = caller
        if not caller.may(permission, namespace):
            raise ForbiddenError(caller.name, permission.name.lower(), namespace)
        request.state.acts_in = namespace
        return caller

    return check
