"""What the tests of the election share: candidates of one Lease, each on a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.fake_cluster import FakeCluster
from tidework.clock import ManualClock
from tidework_operator.cluster import Kind
from tidework_operator.leadership import Election

START = datetime(2026, 1, 5, 10, tzinfo=UTC)


class Contest:
    """A cluster, and candidates on clocks of their own."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.cluster = FakeCluster(self.clock)

    def candidate(self, identity: str, **given: Any) -> Election:
        clock = given.pop("clock", self.clock)
        return Election(
            self.cluster, clock, namespace="tidework", name="operator", identity=identity, **given
        )

    def lease(self) -> dict[str, Any]:
        (found,) = self.cluster.objects(Kind.LEASE)
        spec: dict[str, Any] = found["spec"]
        return spec

    async def pass_time(self, seconds: float, *candidates: Election) -> None:
        """Let time pass, each candidate looking every 2 s as its loop does."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.clock.advance(timedelta(seconds=min(2, end - self.clock.monotonic())))
            for candidate in candidates:
                await candidate.tick()
