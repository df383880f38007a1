"""The examples of docs/queues.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.docs import run_block
from tidework import Tidework
from tidework.broker.connection.transport import drive
from tidework.client import Client
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker

PAGE = Path(__file__).parents[2] / "docs" / "queues.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
QUEUE = QueueName("ns", "default")


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def page(broker: MemoryBroker) -> dict[str, Any]:
    """The tasks that the examples enqueue."""
    app = Tidework("page")
    app.client = Client(Settings(namespace="ns"), broker=broker)

    @app.task
    def send(to: str, subject: str) -> None: ...

    @app.task
    def sync(customer: int) -> None: ...

    @app.task
    def report() -> None: ...

    return {"send": send, "sync": sync, "report": report}


def waiting(broker: MemoryBroker) -> int:
    return drive(broker.stats(QUEUE)).backlog


async def test_the_same_id_enqueues_once(page: dict[str, Any], broker: MemoryBroker) -> None:
    by_id, _ = BLOCKS

    await run_block(by_id, page)
    await run_block(by_id, page)

    assert waiting(broker) == 1


async def test_unique_keys_skip_and_replace(page: dict[str, Any], broker: MemoryBroker) -> None:
    _, by_key = BLOCKS

    await run_block(by_key, page)
    first = page["handle"]
    assert first.inserted
    assert (await first.get()).state is JobState.CANCELLED, "the second enqueue replaces it"
    assert waiting(broker) == 2

    await run_block(by_key, page)
    assert not page["handle"].inserted
    assert page["handle"].id != first.id
    assert waiting(broker) == 2, "one of each key"
