"""The record of acts: who did what, on what, why, when, and how it ended.

It stands outside of all routes, so a new one is recorded without a line of its own: whatever has a
method that may act, and a caller who was allowed to. An act is recorded when it is done, before its
answer is sent: who has the answer finds it in the record. Should the record not be written, the act
is done all the same, and the log has it. What is refused before the permission is known is a line
of the log alone, or anybody could push the acts of others out of the record.

Params, results, bodies, query strings, tokens and cookies are not recorded.
"""

from __future__ import annotations

import json
import logging
import secrets
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidework.access.caller import Caller
from tidework.access.guard import SAFE_METHODS
from tidework.broker.acts import Act, Acts
from tidework.clock import Clock
from tidework.errors import BrokerError
from tidework.model.fire import one_line

MOST_READ = 64 * 1024
"""Bytes of a body in which a reason is looked for."""

logger = logging.getLogger(__name__)


class Recorder:
    """ASGI middleware; ``requires`` leaves in the request's state who acts, and where."""

    def __init__(self, app: ASGIApp, record: Acts, clock: Clock) -> None:
        self._app = app
        self._record = record
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer; an act is recorded."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        body = bytearray()

        async def receive_and_look() -> Message:
            message = await receive()
            if len(body) < MOST_READ:
                body.extend(message.get("body", b"")[:MOST_READ])
            return message

        async def record_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._note(scope, state, bytes(body), message["status"])
            await send(message)

        await self._app(scope, receive_and_look, record_and_send)

    async def _note(self, scope: Scope, state: dict[str, Any], body: bytes, status: int) -> None:
        caller: Caller | None = state.get("caller")
        route = scope.get("route")
        act = Act(
            id=secrets.token_hex(8),
            at=self._clock.now(),
            by="" if caller is None else caller.name,
            via="" if caller is None else caller.via,
            permission="" if caller is None else caller.permission.name.lower(),
            name=getattr(route, "name", ""),
            target=one_line(scope["path"]),
            reason=reason_of(scope["query_string"], body),
            status=status,
        )
        namespace = state.get("acts_in")
        if namespace is None and status < 400:
            return  # a sign-out: nothing of ours has changed
        if namespace is None:
            logger.warning(
                "%s %s is refused: %d",
                scope["method"],
                act.target,
                status,
                extra={"event": "act_refused"} | _fields(act),
            )
            return
        logger.info(
            "%s: %s %s, %d",
            act.by,
            scope["method"],
            act.target,
            status,
            extra={"event": "act_done", "namespace": namespace} | _fields(act),
        )
        try:
            await self._record.note_act(namespace, act)
        except BrokerError as error:
            logger.error(  # noqa: TRY400 - the text says all
                "an act of %s is not in the record, only in this log: %s",
                act.by,
                error,
                extra={"event": "act_not_recorded", "namespace": namespace} | _fields(act),
            )


def _fields(act: Act) -> dict[str, Any]:
    return {
        "by": act.by,
        "via": act.via,
        "act": act.name,
        "target": act.target,
        "reason": act.reason,
        "status": act.status,
    }


def reason_of(query: bytes, body: bytes) -> str:
    """The ``reason`` that a caller gives: in the query string, or in a JSON object as body."""
    found: Any = parse_qs(query.decode("latin-1")).get("reason", [""])[0]
    if not found and body.lstrip()[:1] == b"{":
        try:
            found = json.loads(body).get("reason")
        except ValueError:
            found = ""
    return one_line(found) if isinstance(found, str) else ""
