"""What a worker knows of a task without its code: its name and its bounds.

Plain data: it travels from the template process to the supervisor as JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tidework.errors import ConfigurationError
from tidework.meant import listed
from tidework.model.bounds import check_attempts, check_priority, check_timeout, delay_given
from tidework.model.identity import is_task_name
from tidework.model.job import DEFAULT_PRIORITY
from tidework.model.retry import RetryPolicy
from tidework.model.spans import Seconds, span_given


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task without its code.

    timeout:      hard timeout of one attempt; None = the queue's hardTimeout
    soft_timeout: when SoftTimeout is raised in it; None = never
    """

    name: str
    queue: str
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None
    priority: int = DEFAULT_PRIORITY
    soft_timeout: timedelta | None = None

    def __post_init__(self) -> None:
        if not is_task_name(self.name):
            raise ConfigurationError(
                f"task name {self.name!r}: use 1 to 200 characters of A-Z a-z 0-9 _ . : / -"
            )
        if self.timeout is not None:
            check_timeout(f"task {self.name}: the timeout", self.timeout)
        self._check_soft_timeout()
        check_priority(f"task {self.name}: priority", self.priority)

    def _check_soft_timeout(self) -> None:
        if self.soft_timeout is None:
            return
        check_timeout(f"task {self.name}: the soft timeout", self.soft_timeout)
        if self.timeout is not None and self.soft_timeout >= self.timeout:
            soft, hard = self.soft_timeout.total_seconds(), self.timeout.total_seconds()
            raise ConfigurationError(
                f"task {self.name}: the soft timeout of {soft:g} s has to be below the timeout of "
                f"{hard:g} s, which kills"
            )

    @classmethod
    def declared(
        cls,
        name: str,
        queue: str,
        *,
        max_attempts: int,
        delays: Sequence[Seconds],
        timeout: Seconds | None,
        soft_timeout: Seconds | None,
        priority: int,
    ) -> TaskSpec:
        """Read what an application declares. Raises ConfigurationError for a bad value."""

        def span(what: str, value: Seconds | None) -> timedelta | None:
            return None if value is None else span_given(f"task {name}: {what}", value)

        check_attempts(f"task {name}: max_attempts", max_attempts)
        try:
            waits = tuple(delay_given(f"task {name}: delays: delay", delay) for delay in delays)
        except TypeError as error:
            raise ConfigurationError(f"task {name}: delays={delays!r}: give a list") from error
        return cls(
            name=name,
            queue=queue,
            retry=RetryPolicy(max_attempts=max_attempts, delays=waits),
            timeout=span("timeout", timeout),
            priority=priority,
            soft_timeout=span("soft_timeout", soft_timeout),
        )

    def to_document(self) -> dict[str, Any]:
        """Plain JSON data; durations in seconds."""
        return {
            "name": self.name,
            "queue": self.queue,
            "priority": self.priority,
            "timeout_seconds": _seconds_of(self.timeout),
            "soft_timeout_seconds": _seconds_of(self.soft_timeout),
            "max_attempts": self.retry.max_attempts,
            "delays_seconds": [delay.total_seconds() for delay in self.retry.delays],
            "factor": self.retry.factor,
            "max_delay_seconds": self.retry.max_delay.total_seconds(),
            "jitter": self.retry.jitter,
        }

    @classmethod
    def from_document(cls, found: Mapping[str, Any]) -> TaskSpec:
        """Read what ``to_document`` wrote."""
        return cls(
            name=found["name"],
            queue=found["queue"],
            priority=found["priority"],
            timeout=_span_of(found["timeout_seconds"]),
            soft_timeout=_span_of(found["soft_timeout_seconds"]),
            retry=RetryPolicy(
                max_attempts=found["max_attempts"],
                delays=tuple(timedelta(seconds=s) for s in found["delays_seconds"]),
                factor=found["factor"],
                max_delay=timedelta(seconds=found["max_delay_seconds"]),
                jitter=found["jitter"],
            ),
        )


def needs_slots(tasks: Collection[str]) -> str:
    """Why these tasks of a queue with async slots do not run there, and how to mend it."""
    return (
        "the workers of this queue have async slots, an event loop that their jobs share, and what "
        f"is not an 'async def' would block it ({listed(sorted(tasks))}); make it an 'async def', "
        "give it a queue of its own, or give this queue slots instead of async slots"
    )


def _seconds_of(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _span_of(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
