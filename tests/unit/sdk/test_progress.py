"""progress: what is said of a job, how often, by whom."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import Any

import pytest

from tests.support.interruption import interrupted_at
from tests.unit.sdk.long_jobs import (
    LongJob,
    error_of,
    long_job,
    progress_in,
    talkative,
)
from tidework import checkpoint, progress
from tidework.errors import ConfigurationError
from tidework.model import current
from tidework.model.outcome import Outcome
from tidework.model.progress import NOTE_LIMIT

__all__ = ["long_job", "talkative"]


@pytest.mark.usefixtures("talkative")
def test_progress_is_said_as_it_is(long_job: LongJob) -> None:
    def task() -> None:
        progress(1)
        progress(2.5, 10, "the\nsecond\tone")
        progress(3, note="x" * 1000)

    long_job.run(task)

    assert progress_in(long_job.said) == [
        [1, None, ""],
        [2.5, 10, "the second one"],
        [3, None, "x" * NOTE_LIMIT],
    ]


def test_of_very_many_few_are_said_and_the_last_one_is(long_job: LongJob) -> None:
    def task() -> None:
        for number in range(10_000):
            progress(number, 10_000)

    long_job.run(task)

    found = progress_in(long_job.said)
    assert len(found) < 100
    assert (found[0], found[-1]) == ([0, 10_000, ""], [9_999, 10_000, ""])


def test_the_last_word_before_a_long_silence_is_said_too(long_job: LongJob) -> None:
    heard = threading.Event()
    say = long_job._say

    def hear(number: int, said: bytes, positions: bytes, last: bool) -> bool:
        if said.startswith(b"[2,") and not last:
            heard.set()
        return say(number, said, positions, last)

    long_job._say = hear  # type: ignore[method-assign]

    def task() -> bool:
        progress(1)
        progress(2)
        return heard.wait(10)

    assert long_job.run(task) == Outcome.complete(b"true")


def test_what_cannot_be_sent_now_is_sent_later(long_job: LongJob) -> None:
    long_job.mute = True

    def task() -> None:
        for item in checkpoint([1, 2]):
            progress(item)
        raise ValueError("end")

    long_job.run(task)

    assert progress_in(long_job.said) == [[2, None, ""]]
    assert long_job.positions == {"": 2}


@pytest.mark.usefixtures("talkative")
def test_threads_and_tasks_of_a_job_may_say_so_too(long_job: LongJob) -> None:
    async def task() -> None:
        await asyncio.to_thread(progress, 1)
        await asyncio.gather(asyncio.to_thread(progress, 2))

    long_job.run(task)

    assert progress_in(long_job.said) == [[1, None, ""], [2, None, ""]]


def test_a_thread_that_a_job_left_behind_says_nothing(long_job: LongJob) -> None:
    ended, said = threading.Event(), threading.Event()

    def go_on(job: current.RunningJob) -> None:
        ended.wait(10)
        job.note_progress(7, None, "")
        said.set()

    def task() -> None:
        job = current.running_job.get()
        threading.Thread(target=go_on, args=(job,), daemon=True).start()

    long_job.run(task)
    ended.set()

    assert said.wait(10)
    assert long_job.said == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-1,), "done=-1"),
        (("1",), "done='1'"),
        ((True,), "done=True"),
        ((float("nan"),), "done=nan"),
        ((1, float("inf")), "total=inf"),
        ((1, -5), "or None if it is not known"),
        ((1, 2, None), "a text of one line"),
    ],
)
def test_bad_progress_is_refused_inside_and_outside_of_a_job(
    long_job: LongJob, arguments: tuple[Any, ...], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        progress(*arguments)

    assert says in error_of(long_job.run(lambda: progress(*arguments))).message


def test_the_end_waits_for_what_a_thread_is_about_to_send() -> None:
    """Else it would come after the end, and count for nothing."""
    story, sends, ends = list[str](), threading.Event(), threading.Event()

    def say(progress: bytes, _positions: bytes, _last: bool) -> bool:
        if progress.startswith(b"[2,"):
            sends.set()
            assert ends.wait(10)
            time.sleep(0.05)  # the end has begun meanwhile
        story.append(progress.decode())
        return True

    job = current.RunningJob(_describe_nothing, say)
    job.note_progress(1, None, "")
    job.note_progress(2, None, "")
    assert sends.wait(10), "the thread has it"

    ends.set()
    job.end()

    assert story == ['[1,null,""]', '[2,null,""]']


def test_a_soft_timeout_at_any_step_lets_the_next_job_speak() -> None:
    step = 0
    while True:
        step += 1
        job = current.RunningJob(_describe_nothing, lambda *_said: True, lambda *_later: None)
        interrupted = interrupted_at(
            step, partial(job.note_progress, 1, None, ""), within="model/current.py"
        )
        story: list[str] = []

        def say(progress: bytes, _positions: bytes, _last: bool, heard: list[str] = story) -> bool:
            heard.append(progress.decode())
            return True

        after = current.RunningJob(_describe_nothing, say, lambda *_later: None)
        after.note_progress(2, None, "")
        assert story == ['[2,null,""]']
        if not interrupted:
            break
    assert step > 5


def _describe_nothing(_running: current.RunningJob) -> current.CurrentJob:
    raise NotImplementedError
