"""A route says what permission it needs: ``dependencies=[Depends(requires(Permission.VIEWER))]``.

A test asks every route of the application for such a line (tests/unit/api/test_routes.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Request

from tidework.access.caller import Caller, Permission
from tidework.errors import ForbiddenError


async def _says_why(
    reason: Annotated[
        str, Query(max_length=300, description="Why you do it: for the record of acts.")
    ] = "",
) -> None:
    """What every act takes besides its own."""


async def _looks() -> None:
    """A look has no reason."""


def requires(permission: Permission, *, to_act: bool = True) -> Callable[..., Awaitable[Caller]]:
    """A dependency that identifies the caller, and refuses one without the permission.

    to_act: False for a look that needs more than VIEWER
    """
    more = _says_why if to_act and permission > Permission.VIEWER else _looks

    async def check(request: Request, _more: None = Depends(more)) -> Caller:
        context = request.app.state.context
        caller: Caller = await context.access.identify(request)
        namespace = request.query_params.get("namespace") or context.namespace
        request.state.caller = caller
        if not caller.may(permission, namespace):
            raise ForbiddenError(caller.name, permission.name.lower(), namespace)
        request.state.acts_in = namespace
        return caller

    return check
