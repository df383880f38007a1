"""Retry policy: which delay comes before which attempt, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from tidework.errors import ConfigurationError
from tidework.model.outcome import JobError, Outcome

DEFAULT_MAX_ATTEMPTS = 4
DEFAULT_DELAYS = (timedelta(seconds=5), timedelta(seconds=30), timedelta(seconds=120))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The first delays by list, then exponential from the last one, with jitter.

    max_attempts: runs in all, the first included
    delays:       wait before the 2nd, 3rd, ... attempt
    factor:       growth of the delay after the list is used up
    max_delay:    bound of every delay
    jitter:       share of the delay that is drawn at random, added (0..1)
    """

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    delays: tuple[timedelta, ...] = field(default=DEFAULT_DELAYS)
    factor: float = 2.0
    max_delay: timedelta = timedelta(hours=1)
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ConfigurationError(f"max_attempts is {self.max_attempts}; it has to be 1 or more")
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"jitter is {self.jitter}; it has to lie between 0 and 1")
        if self.factor < 1:
            raise ConfigurationError(f"factor is {self.factor}; it has to be 1 or more")
        if any(delay < timedelta(0) for delay in self.delays):
            raise ConfigurationError("a retry delay is negative; use 0 or more")

    def delay_after(self, attempt: int, random: Callable[[], float]) -> timedelta:
        """The wait after the failed ``attempt`` (from 1). ``random`` draws from [0, 1)."""
        if attempt <= len(self.delays):
            wait = self.delays[attempt - 1]
        else:
            last = self.delays[-1] if self.delays else timedelta(0)
            # Bounded exponent: 2.0**2000 would overflow a float.
            growth = self.factor ** min(attempt - len(self.delays), 64)
            wait = min(last, self.max_delay)
            seconds = min(wait.total_seconds() * growth, self.max_delay.total_seconds())
            wait = timedelta(seconds=seconds)
        wait += wait * (self.jitter * random())
        return min(wait, self.max_delay)

    def after_failure(
        self, error: JobError, attempt: int, max_attempts: int, random: Callable[[], float]
    ) -> Outcome:
        """Retry while attempts are left, else bury."""
        if attempt >= max_attempts:
            return Outcome.bury(error)
        return Outcome.retry(error, self.delay_after(attempt, random))
