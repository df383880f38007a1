"""The exporter of queues: what docs/metrics.md lists, of what the caller may see."""

from __future__ import annotations

import re
from datetime import timedelta

import httpx
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import HTTPConnection

from tests.architecture.source import ROOT
from tidework.access.access import Everybody
from tidework.access.caller import Caller, Permission
from tidework.api.application import create_api
from tidework.api.context import ApiContext
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.clock import from_ms
from tidework.metrics import MetricsPage, WorkerNumbers
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.scaled import Scaled

PAGE = (ROOT / "docs/metrics.md").read_text("utf-8")


def listed(title: str) -> dict[str, str]:
    """Name -> type, of a section of the page."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(tidework_\w+)` \| (\w+) \|", section, re.MULTILINE))


def exposed(text: str) -> dict[str, str]:
    """The same, of what is exposed."""
    families = text_string_to_metric_families(text)
    return {
        found.name + ("_total" if found.type == "counter" else ""): found.type for found in families
    }


async def scrape(
    broker: RedisBroker, namespace: str, access: Everybody, path: str = "/metrics"
) -> httpx.Response:
    app = create_api(ApiContext(broker, access, namespace))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.get(path)


async def test_what_is_exposed_is_what_the_page_lists(broker: RedisBroker, namespace: str) -> None:
    queue = QueueName(namespace, "emails")
    await broker.open_queue(queue)
    await broker.enqueue(queue, [Job("a", "t", {}), Job("b", "t", {}, delay=60)])
    await broker.beat(queue, Presence("w.1", from_ms(0), {}), ttl=timedelta(minutes=1))
    await broker.pause(queue, "a look")
    term = await broker.take_term(queue)
    await broker.note_scaling(queue, term, Scaled(0, 1, 2, "2 waiting"), is_step=True)

    answer = await scrape(broker, namespace, Everybody(Permission.VIEWER))

    assert exposed(answer.text) == listed("Queues")
    mine = {"namespace": namespace, "queue": "emails"}
    samples = [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    ]
    for name, labels, value in (
        ("jobs", {"state": "ready"}, 1),
        ("jobs", {"state": "scheduled"}, 1),
        ("workers", {"state": "living"}, 1),
        ("replicas", {"kind": "wanted"}, 2),
        ("paused", {}, 1),
        ("transitions_total", {"transition": "enqueued"}, 2),
    ):
        assert (f"tidework_queue_{name}", mine | labels, value) in samples


def test_a_worker_exposes_what_the_page_lists() -> None:
    assert exposed(MetricsPage(WorkerNumbers("1", 2)).text().decode()) == listed("Workers")


async def test_a_caller_sees_the_queues_of_its_namespaces(
    broker: RedisBroker, namespace: str
) -> None:
    other = f"{namespace}-other"
    for where in (namespace, other):
        await broker.open_queue(QueueName(where, "emails"))

    class OfOne(Everybody):
        async def identify(self, request: HTTPConnection) -> Caller:
            return Caller("prometheus", Permission.VIEWER, frozenset({namespace}))

    seen = await scrape(broker, namespace, OfOne(Permission.VIEWER))
    refused = await scrape(
        broker, namespace, OfOne(Permission.VIEWER), f"/metrics?namespace={other}"
    )

    assert f'namespace="{namespace}"' in seen.text
    assert f'namespace="{other}"' not in seen.text
    assert refused.status_code == 403
