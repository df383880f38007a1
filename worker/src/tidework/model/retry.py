"""Retry policy: which delay comes before which attempt, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from tidework.errors import ConfigurationError
from tidework.model.bounds import check_attempts
from tidework.model.outcome import JobError, Outcome

DEFAULT_MAX_ATTEMPTS = 4
DEFAULT_DELAYS = (timedelta(seconds=5), timedelta(seconds=30), timedelta(seconds=120))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The first delays by list, then exponential from the last one, with jitter.

    max_attempts: runs in all, the first included
    delays:       wait before the 2nd, 3rd, ... attempt
    factor:       growth of the delay after the list is used up
    max_delay:    bound of the delays that grow; those of the list may be longer
    jitter:       share of the delay that is drawn at random, added (0..1)
    """

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    delays: tuple[timedelta, ...] = field(default=DEFAULT_DELAYS)
    factor: float = 2.0
    max_delay: timedelta = timedelta(hours=1)
    jitter: float = 0.1

    def __post_init__(self) -> None:
        check_attempts("max_attempts", self.max_attempts)
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"jitter is {self.jitter}; it has to lie between 0 and 1")
        if self.factor < 1:
            raise ConfigurationError(f"factor is {self.factor}; it has to be 1 or more")
        if any(delay < timedelta(0) for delay in self.delays):
            raise ConfigurationError("a retry delay is negative; use 0 or more")

    def delay_after(self, attempt: int, random: Callable[[], float]) -> timedelta:
        """The wait after the failed ``attempt`` (from 1). ``random`` draws from [0, 1)."""
        bound = max((self.max_delay, *self.delays))
        if attempt <= len(self.delays):
            wait = self.delays[attempt - 1]
        else:
            last = self.delays[-1] if self.delays else timedelta(0)
            # Bounded exponent: 2.0**2000 would overflow a float.
            growth = self.factor ** min(attempt - len(self.delays), 64)
            seconds = min(last.total_seconds() * growth, bound.total_seconds())
            wait = timedelta(seconds=seconds)
        wait += wait * (self.jitter * random())
        return min(wait, bound)

    def after_failure(
        self, error: JobError, attempt: int, max_attempts: int, random: Callable[[], float]
    ) -> Outcome:
        """Retry while attempts are left, else bury."""
        if attempt >= max_attempts:
            return Outcome.bury(error)
        return Outcome.retry(error, self.delay_after(attempt, random))
