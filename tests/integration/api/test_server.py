"""`tidework dashboard` as a process: it listens, refuses, waits for Redis, and ends in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.fixtures import namespace, redis_url, valkey
from tests.support.servers import ValkeyServer, free_port
from tests.support.waiting import wait_until

__all__ = ["namespace", "redis_url", "valkey"]


@contextmanager
def dashboard(url: str, log: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The program, and where its API is."""
    port = free_port()
    with log.open("wb") as output:
        program = subprocess.Popen(
            [sys.executable, "-m", "tidework", "dashboard", "--port", str(port), *options],
            env=os.environ | {"TIDEWORK_REDIS_URL": url, "TIDEWORK_LOG_FORMAT": "json"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    with program:
        try:
            wait_until(lambda: '"api_listens"' in log.read_text(), story=log.read_text)
            yield program, f"http://127.0.0.1:{port}/api/v1"
        finally:
            program.kill()


def test_it_serves_until_sigterm(redis_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with dashboard(redis_url, log) as (program, api):
        answer = httpx.get(f"{api}/queues")
        document = httpx.get(f"{api}/openapi.json").json()

        program.send_signal(signal.SIGTERM)

        assert program.wait(30) == 0, log.read_text()
    assert answer.status_code == 200
    assert "/api/v1/queues" in document["paths"]
    assert '"api_ended"' in log.read_text()


def test_it_starts_before_redis_and_serves_once_that_is_there(tmp_path: Path) -> None:
    server = ValkeyServer()
    with server:
        url = server.url
        server.sync_and_kill()
        with dashboard(url, tmp_path / "log") as (_, api):
            before = httpx.get(f"{api}/queues")
            server.start()
            wait_until(lambda: httpx.get(f"{api}/queues").status_code == 200)

    assert before.json()["code"] == "redis_unavailable"


def test_a_port_that_is_taken_is_refused_in_words(redis_url: str, tmp_path: Path) -> None:
    with dashboard(redis_url, tmp_path / "log") as (_, api):
        port = str(httpx.URL(api).port)
        second = subprocess.run(
            [sys.executable, "-m", "tidework", "dashboard", "--port", port],
            env=os.environ | {"TIDEWORK_REDIS_URL": redis_url},
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )

    assert second.returncode == 2
    assert "another program listens there" in second.stderr
