"""Waiting for a condition: it is looked at until it holds, for a bounded time, and never slept for.

``wait_until`` in ordinary tests, ``await until`` in tests that are coroutines. What fails says what
was waited for: in the words of the test, or else as it stands in its source. For what must not
happen there is no condition; ``let_turn`` gives it its chance.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

PATIENCE_S = 30.0
"""Far longer than anything takes, on a busy machine too."""
T = TypeVar("T")
Errors = tuple[type[Exception], ...]


def wait_until(
    found: Callable[[], T | None],
    what: str = "",
    seconds: float = PATIENCE_S,
    *,
    errors: Errors = (),
    story: Callable[[], str] | None = None,
    pause: float = 0.01,
) -> T:
    """Look until ``found`` returns something true, and return that.

    errors: raised by ``found``, these mean "not yet"
    story: what a failure shows beside: the log of a process
    """
    deadline = time.monotonic() + seconds
    while True:
        last: object = None
        try:
            last = seen = found()
            if seen:
                return seen
        except errors as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(_failure(found, what, seconds, last, story))
        time.sleep(pause)


@overload
async def until(
    found: Callable[[], Awaitable[T | None]],
    what: str = ...,
    seconds: float = ...,
    *,
    errors: Errors = ...,
) -> T: ...


@overload
async def until(
    found: Callable[[], T | None], what: str = ..., seconds: float = ..., *, errors: Errors = ...
) -> T: ...


async def until(
    found: Callable[[], Any],
    what: str = "",
    seconds: float = PATIENCE_S,
    *,
    errors: Errors = (),
) -> Any:
    """The same in a coroutine; ``found`` may be one, and is cancelled at the deadline."""
    last: object = "no answer"
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            while True:
                try:
                    seen = found()
                    last = seen = await seen if inspect.isawaitable(seen) else seen
                    if seen:
                        return seen
                except errors as error:
                    last = error
                await asyncio.sleep(0.002)
    except TimeoutError:
        if not bound.expired():
            raise
        raise AssertionError(_failure(found, what, seconds, last)) from None


async def let_turn() -> None:
    """Let everything run that can run without the clock: for what must not happen."""
    for _ in range(200):
        await asyncio.sleep(0)


def _failure(
    found: Callable[[], Any],
    what: str,
    seconds: float,
    last: object,
    story: Callable[[], str] | None = None,
) -> str:
    text = f"not within {seconds:g} s: {what or _source_of(found)}. Last seen: {last!r}"
    return f"{text}\n{story()}" if story else text


def _source_of(found: Callable[[], Any]) -> str:
    """The lines where it stands: a lambda's are those of the call."""
    try:
        return inspect.getsource(found).strip()
    except (OSError, TypeError):
        return repr(found)
