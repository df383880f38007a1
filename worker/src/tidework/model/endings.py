"""What a task raises to end its attempt on purpose: not errors, but instructions."""

from __future__ import annotations

from tidework.model.spans import Seconds, span_given


class Bury(Exception):  # noqa: N818 - an instruction of the task's author, not an error
    """Make the job a dead letter now, whatever attempts are left. The text is its reason."""


class Retry(Exception):  # noqa: N818 - an instruction of the task's author, not an error
    """Count this attempt as failed and run again after ``delay`` (seconds), ten years at most.

    None: the wait of the task's policy. Raises ConfigurationError for a delay that is none.
    """

    def __init__(self, reason: str = "", *, delay: Seconds | None = None) -> None:
        super().__init__(reason)
        self.delay = None if delay is None else span_given("Retry: delay", delay)


class Released(BaseException):
    """Release the job, to run again later, uncounted. The text is its reason."""

    at_once = False


class ReleasedAtOnce(Released):
    """The same, to run again at once: elsewhere."""

    at_once = True


def release_in(error: BaseException) -> Released | None:
    """The error itself, or the one in a group (asyncio.TaskGroup); None if there is none."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for each in error.exceptions if (found := release_in(each))), None)
    return error if isinstance(error, Released) else None
