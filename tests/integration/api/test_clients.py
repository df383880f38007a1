"""examples/http-api: clients in Node and PHP that know the OpenAPI document alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from tests.integration.api.served import served
from tests.support.fixtures import namespace, redis_url, valkey
from tidework.broker.redis.redis_broker import connect
from tidework.model.identity import QueueName

__all__ = ["namespace", "redis_url", "valkey"]

EXAMPLE = Path(__file__).parents[3] / "examples" / "http-api"
CLIENTS = [
    pytest.param(
        ["node", "walk.mjs"],
        marks=pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the PATH"),
        id="node",
    ),
    pytest.param(
        ["php", "walk.php"],
        marks=pytest.mark.skipif(
            shutil.which("php") is None, reason="needs php on the PATH (Debian: php-cli)"
        ),
        id="php",
    ),
]


async def mirror_nightly(url: str, queue: QueueName) -> None:
    """A CronTask, as a leader mirrors it."""
    broker = connect(url)
    await broker.open_queue(queue)
    term = await broker.take_term(queue)
    document = {
        "apiVersion": "tidework.dev/v1alpha1",
        "kind": "CronTask",
        "metadata": {"name": "nightly", "namespace": queue.namespace, "uid": "nightly"},
        "spec": {"queue": queue.name, "task": "send", "every": "1h"},
    }
    await broker.put_crontasks(queue, term, {"nightly": json.dumps(document).encode()})
    await broker.admit_cron(queue, term, "nightly", "f", 1_700_000_000, reset=False)
    await broker.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_walk_through_the_api(redis_url: str, namespace: str, client: Sequence[str]) -> None:
    asyncio.run(mirror_nightly(redis_url, QueueName(namespace, "emails")))
    with served(redis_url, namespace) as url:
        walk = subprocess.run(
            [*client, url, "emails", "send", '{"to": "Zoë"}', "nightly"],
            cwd=EXAMPLE,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert walk.returncode == 0, walk.stdout + walk.stderr
        said = dict(line.split(" ", 1) for line in walk.stdout.splitlines())
        jobs = f"{url}/api/v1/jobs/emails"
        retried = httpx.get(f"{jobs}/{said['retried'].removeprefix('as ')}").json()
        ran = httpx.get(f"{jobs}/{said['run'].removeprefix('now ')}").json()

    assert said["status"] == "ready"
    assert said["why"].startswith("no_worker: No worker serves queue emails.")
    assert retried["params"] == {"to": "Zoë", "again": True}
    assert retried["retry_of"] == said["enqueued"]
    assert (ran["state"], ran["cron"]) == ("ready", "nightly")
