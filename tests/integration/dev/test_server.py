"""The embedded server of `tidework dev`: its port, and somebody else's server on it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.dev_process import DevProcess
from tests.support.servers import ValkeyServer, free_port
from tidework import Client, Settings
from tidework.model.identity import new_job_id
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
spec: {app: shop, minReplicas: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "shop.yaml").write_text(QUEUE)
    return tmp_path


class OnPort(ValkeyServer):
    """Somebody else's server, on a port of our choice."""

    def __init__(self, port: int, *options: str) -> None:
        super().__init__(None, *options)
        self.port = port


def refused(folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "tidework", "dev", "shop.yaml", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not ended.stdout
    return ended.stderr


@pytest.mark.parametrize("options", [(), ("--requirepass", "secret")])
def test_the_server_of_somebody_else_is_refused_and_not_written_into(
    folder: Path, options: tuple[str, ...]
) -> None:
    with ValkeyServer(None, *options) as other:
        told = refused(folder, "--redis-port", str(other.port))
        assert f"--redis-port {other.port}: another Redis or Valkey server listens there" in told
        password = "secret" if options else None
        with redis.Redis(port=other.port, password=password) as client:
            assert client.dbsize() == 0


def test_a_port_of_another_program_is_told_by_the_flags_name(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = refused(folder, "--redis-port", str(port))
    assert f"--redis-port {port}: another program listens there" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--redis-port", "70000"), "'--redis-port': 70000 is not in the range"),
        (("--redis-port", "0"), "'--redis-port': 0 is not in the range"),
        (("--redis-port", "x"), "'--redis-port': 'x' is not a valid integer"),
        (
            ("--redis-port", "7777", "--redis-url", "redis://127.0.0.1:7777/0"),
            "--redis-port belongs to the embedded server",
        ),
        (
            ("--data-dir", "data", "--redis-url", "redis://127.0.0.1:7777/0"),
            "--data-dir belongs to the embedded server",
        ),
    ],
)
def test_a_flag_that_cannot_be_meant_is_told_by_its_name(
    folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    assert told in refused(folder, *arguments)


@pytest.fixture
def dev(folder: Path) -> Iterator[DevProcess]:
    found = DevProcess(folder, "shop.yaml", "--redis-port", str(free_port()), "--data-dir", "data")
    try:
        yield found
    finally:
        found.end()


def test_a_server_that_took_the_port_after_ours_died_is_not_written_into(dev: DevProcess) -> None:
    url = dev.wait_for("started")["redis_url"]
    client = Client(Settings(redis_url=url))
    job = Job(new_job_id(), "send", {"to": "ada"}, created_at=1.8e9)
    dev.wait_until(lambda: "worker started" in dev.stderr)
    os.kill(dev.process.pid, signal.SIGSTOP)
    os.kill(dev.server_pid(), signal.SIGKILL)
    with OnPort(int(url.rpartition(":")[2].partition("/")[0])) as other:
        os.kill(dev.process.pid, signal.SIGCONT)
        down = dev.wait_for("server_down", count=2)
        assert "another Redis or Valkey server listens there" in down["error"]
        assert down["wait"] > dev.find("server_down")[0]["wait"]
        # The workers have met it as well: not even they were let in.
        dev.wait_until(lambda: "refuses the credentials" in dev.stderr)
        with other.client() as look:
            assert look.dbsize() == 0
    dev.wait_for("server_restarted")
    client.enqueue_sync("emails", [job])
    assert client.result_sync(job.id, queue="emails", timeout=60) == "sent to ada"
