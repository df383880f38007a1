"""The examples of docs/tasks.md do what the page says."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.sdk.long_jobs import LongJob
from tidework import Bury, Retry, SoftTimeout, long_jobs, once_per_key
from tidework.broker.connection.transport import drive
from tidework.client import Client
from tidework.model.current import CurrentJob, running_job
from tidework.model.identity import QueueName
from tidework.model.job import Job, decode_stored_job
from tidework.model.lease import ExchangeRequest, Lease
from tidework.model.outcome import Outcome, OutcomeKind
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def page() -> dict[str, Any]:
    """What the examples define, as if they stood in one module."""
    found: dict[str, Any] = {"__name__": "examples"}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), found)
    return found


async def test_an_order_arrives_with_its_key_and_its_result_is_a_text(page: dict[str, Any]) -> None:
    app, confirm = page["app"], page["confirm"]
    app.client = Client(Settings(namespace="ns"), broker=MemoryBroker())
    order = page["Order"](lines=["a", "b"])

    handle = await confirm.enqueue(order, due="tomorrow")
    record = await handle.get()

    job = decode_stored_job(record.body)
    arguments = confirm.signature.to_arguments(job.params, job.unions)
    assert arguments == {"order": order, "due": "tomorrow"}
    assert confirm(**arguments) == f"{order.key} tomorrow 2"


def test_sync_shop_is_retried_or_buried_as_the_shop_answers(page: dict[str, Any]) -> None:
    answers = {
        1: SimpleNamespace(status=200, orders=5),
        2: SimpleNamespace(status=429, retry_after=30),
        3: SimpleNamespace(status=404),
    }
    page["ask"] = answers.__getitem__
    sync_shop = page["sync_shop"]

    assert sync_shop(1) == 5
    with pytest.raises(Retry, match="busy") as busy:
        sync_shop(2)
    assert busy.value.delay == timedelta(seconds=30)
    with pytest.raises(Bury, match="shop 3 does not exist"):
        sync_shop(3)
    assert sync_shop.spec.retry.max_attempts == 8


def test_index_returns_what_it_had_done(page: dict[str, Any]) -> None:
    def add_to_index(number: str) -> None:
        if number == "3":
            raise SoftTimeout(240)

    page["add_to_index"] = add_to_index

    assert page["index"](["1", "2", "3", "4"]) == {"done": 2}
    assert page["index"](["1"]) == {"done": 1}


def test_reindex_goes_on_after_the_row_it_had_finished(
    page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    long_job, done, asked = LongJob(), list[int](), list[object]()
    monkeypatch.setattr(long_jobs, "_client", Client(broker=long_job.broker))

    def rows_after(shop: int, last: int | None) -> list[dict[str, int]]:
        asked.append((shop, last))
        return [{"id": row} for row in (10, 20, 30) if row > (last or 0)]

    def index_row(row: dict[str, int]) -> None:
        if row["id"] == 30 and len(asked) == 1:
            raise ValueError("not yet")
        done.append(row["id"])

    page |= {"rows_after": rows_after, "index_row": index_row}
    assert long_job.run(lambda: page["reindex"](7)).kind is OutcomeKind.RETRY
    assert long_job.run(lambda: page["reindex"](7)) == Outcome.complete(b"1")

    assert asked == [(7, None), (7, 20)]
    assert done == [10, 20, 30]
    assert json.loads(long_job.said[-1][0]) == [1, None, "row 30"]


def test_settle_order_charges_once(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    broker, queue, done = MemoryBroker(), QueueName("ns", "q"), list[str]()
    monkeypatch.setattr(once_per_key, "_client", Client(broker=broker))
    page["charge"] = lambda number: done.append(f"charge {number}")
    page["send_receipt"] = lambda number: done.append(f"receipt {number}")
    drive(broker.enqueue(queue, [Job("j", "settle_order", {})]))
    (job,) = drive(broker.exchange(queue, ExchangeRequest("w", 1, 1))).claimed
    lease = Lease(job.id, job.token)
    running = CurrentJob(job.id, "settle_order", "q", "ns", 1, 1, NOW, lease)
    token = running_job.set(running)

    assert [page["settle_order"](7) for _ in range(2)] == [True, False]

    running_job.reset(token)
    assert done == ["charge 7", "receipt 7", "receipt 7"]
