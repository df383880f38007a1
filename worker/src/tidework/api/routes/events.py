"""Server-sent events: how things are, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from tidework.access.caller import Permission
from tidework.access.requires import requires
from tidework.api.context import Namespace
from tidework.api.events.hub import Event, Hub, Listener
from tidework.api.events.subjects import KINDS, read_subject

router = APIRouter(tags=["events"])
HEARTBEAT_S = 15
MOST_SUBJECTS = 20


@router.get(
    "/events",
    dependencies=[Depends(requires(Permission.VIEWER))],
    response_class=EventSourceResponse,
)
async def listen(
    request: Request,
    namespace: Namespace,
    subject: Annotated[
        list[str],
        Query(
            min_length=1,
            max_length=MOST_SUBJECTS,
            description=f"What to listen to; may be given more than once: {', '.join(KINDS)}.",
        ),
    ],
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> EventSourceResponse:
    """A stream of server-sent events about the subjects.

    First comes `state` for each of them, then `change` whenever it changed; the data is what the
    `GET` of the same thing answers, with the subject. `gone`: it is not there any more. `reset`:
    events were lost, and this is how it is now. `trouble` and `recovered` are about Redis.
    With `Last-Event-ID` a client that comes back gets what it missed. A comment comes every 15 s.
    """
    hub: Hub = request.app.state.hub
    listener = await hub.join(read_subject(namespace, each) for each in subject)
    stream = _stream(hub, listener, last_event_id)
    return EventSourceResponse(stream, ping=HEARTBEAT_S, headers={"X-Accel-Buffering": "no"})


async def _stream(
    hub: Hub, listener: Listener, last_event_id: str | None
) -> AsyncIterator[ServerSentEvent]:
    async for event in hub.events(listener, last_event_id):
        yield ServerSentEvent(id=hub.id_of(event), event=event.kind, data=_data(event))


def _data(event: Event) -> str:
    """The subject beside what is told of it, without encoding that again."""
    subject = json.dumps(None if event.subject is None else str(event.subject))
    return f'{{"subject":{subject},"data":{event.data}}}'
