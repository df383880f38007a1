"""`tidework dev` with a server of somebody else's that is full, a replica, loading or away.

Whoever starts it sits in front of it: it says so and ends. A full one still has work to finish.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dev_process import DevProcess
from tests.support.troubles import NO_WRITES, Trouble, Troubled, troubled_server
from tidework import Client, Settings
from tidework.model.job import Job

pytestmark = pytest.mark.timeout(120)

APP = """
from tidework import Tidework

app = Tidework("shop", queue="emails")

@app.task
def send(to: str) -> str:
    return "sent to " + to
"""
QUEUE = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: emails}
spec: {app: shop}
"""


@pytest.fixture
def redis() -> Iterator[Troubled]:
    with troubled_server() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "shop.yaml").write_text(QUEUE)
    return tmp_path


@pytest.mark.parametrize("trouble", NO_WRITES)
def test_it_says_what_is_the_matter_and_ends(
    redis: Troubled, folder: Path, trouble: Trouble
) -> None:
    redis.begin(trouble)

    ended = subprocess.run(
        [sys.executable, "-m", "tidework", "dev", "shop.yaml", "--redis-url", redis.url],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 2
    assert trouble.value in ended.stderr
    assert "Traceback" not in ended.stderr
    redis.mend(trouble)


def test_on_a_full_server_it_finishes_what_is_there(redis: Troubled, folder: Path) -> None:
    client = Client(Settings(redis_url=redis.url))
    client.enqueue_sync("emails", [Job("a", "send", {"to": "ada"}, created_at=1.8e9)])
    redis.begin(Trouble.FULL)

    dev = DevProcess(folder, "shop.yaml", "--redis-url", redis.url)
    try:
        dev.wait_for("started")
        assert client.result_sync("a", queue="emails", timeout=40) == "sent to ada"
        assert dev.interrupt() == 0
    finally:
        dev.end()
    client.close_sync()
