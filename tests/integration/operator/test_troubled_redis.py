"""The operator takes the lead of queues whose Redis is full, a replica, loading or away."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.fake_cluster import FakeCluster
from tests.support.logs import lines
from tests.support.troubles import NO_WRITES, Trouble, Troubled, troubled_server
from tidework.clock import ManualClock
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits
from tidework_operator.connections import DEFAULT, Connections
from tidework_operator.leadership import ClusterLeadership, Election
from tidework_operator.queue_broker import QueueBroker

QUEUE = QueueName("shop", "emails")


@pytest.fixture
def redis() -> Iterator[Troubled]:
    with troubled_server() as found:
        yield found


@pytest.fixture
async def terms(redis: Troubled, tmp_path: Path) -> AsyncIterator[ClusterLeadership]:
    clock = ManualClock(datetime(2026, 1, 5, 10, tzinfo=UTC))
    election = Election(FakeCluster(clock), clock, namespace="tidework", name="o", identity="a")
    await election.tick()
    assert election.leading
    connections = Connections(tmp_path, redis.url, lambda _: QueueLimits())
    yield ClusterLeadership(election, QueueBroker(connections, lambda _: DEFAULT), lambda: {QUEUE})
    await connections.close()


@pytest.mark.parametrize("trouble", NO_WRITES)
async def test_a_queue_is_led_once_its_redis_serves(
    redis: Troubled, terms: ClusterLeadership, trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    redis.begin(trouble)

    for _ in range(2):
        await terms.tick()
        assert terms.term(QUEUE) is None
    (told,) = lines(caplog, "queue_not_led")
    assert trouble.value in told["message"]
    redis.mend(trouble)
    await terms.tick()

    assert terms.term(QUEUE) == 1
    assert lines(caplog, "queue_led")


async def test_a_queue_of_a_full_server_is_led(redis: Troubled, terms: ClusterLeadership) -> None:
    redis.begin(Trouble.FULL)

    await terms.tick()

    assert terms.term(QUEUE) == 1
