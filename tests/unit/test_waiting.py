"""What the tests wait with: what it returns, what it forgives, and what a failure says."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.waiting import until, wait_until


def test_it_returns_what_was_found_and_looks_again_after_the_errors_that_are_named() -> None:
    seen = iter([KeyError("not yet"), [], ["there"]])

    def look() -> object:
        found = next(seen)
        if isinstance(found, Exception):
            raise found
        return found

    assert wait_until(look, errors=(KeyError,)) == ["there"]
    with pytest.raises(StopIteration):
        wait_until(look, errors=(KeyError,))


async def test_a_coroutine_may_look_too() -> None:
    seen = iter([KeyError("not yet"), 0, 7])

    async def look() -> int:
        found = next(seen)
        if isinstance(found, Exception):
            raise found
        return int(str(found))

    assert await until(look, errors=(KeyError,)) == 7
    assert await until(lambda: "at once") == "at once"


def test_a_failure_says_what_was_waited_for_what_was_seen_and_the_story() -> None:
    with pytest.raises(AssertionError) as told:
        wait_until(list, "the pod is gone", 0, story=lambda: "its log")

    assert str(told.value) == "not within 0 s: the pod is gone. Last seen: []\nits log"


async def test_without_words_a_failure_shows_the_condition_as_it_is_written() -> None:
    held: list[str] = []

    with pytest.raises(AssertionError, match=r'"a" in held'):
        await until(lambda: "a" in held, seconds=0)


async def test_a_condition_that_does_not_answer_is_given_up_at_the_deadline() -> None:
    with pytest.raises(AssertionError, match=r"it answers\. Last seen: 'no answer'"):
        await until(asyncio.Event().wait, "it answers", 0.01)


async def test_a_timeout_of_the_condition_itself_is_its_own_error() -> None:
    async def look() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await until(look)
