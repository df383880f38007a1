"""What a silent worker says itself: its probe port tells why Redis does not hear of it.

Asked only where a pod is ready and Redis has not heard of its worker for long. The answer is of
the worker's own words (`/redisz`), so that people read the cause instead of a guess.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import aiohttp

from tidework_operator.cluster import Object
from tidework_operator.naming import PROBE_PORT

ANSWER_WITHIN_S = 1.0
_LONGEST = 600
_IN_TROUBLE = 503

Hear = Callable[[Object], Awaitable[str]]
"""Pod -> what its worker says; '' if it does not say a thing."""

WELL = "ok"
"""It says that its Redis answers."""


async def hear_worker(pod: Object, port: int = PROBE_PORT) -> str:
    """Ask the worker of a pod. Never raises: a worker that cannot be asked says ''."""
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        return ""
    host = f"[{address}]" if ":" in address else address
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(ANSWER_WITHIN_S)) as session,
            session.get(f"http://{host}:{port}/redisz", allow_redirects=False) as answer,
        ):
            text = (await answer.content.read(_LONGEST)).decode("utf-8", "replace").strip()
            if answer.status == _IN_TROUBLE:
                return text
            # A worker of an earlier version does not know the question.
            return WELL if answer.status == 200 and text == WELL else ""
    except (aiohttp.ClientError, OSError, TimeoutError):
        return ""
