"""The program: its exit statuses, and one life of it as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.api_server import ApiServer
from tests.support.fake_cluster import FakeCluster
from tests.support.servers import free_port
from tests.support.waiting import until
from tests.unit.operator.clients import KUBECONFIG
from tests.unit.test_probes import get
from tidework_operator import __main__ as program
from tidework_operator.__main__ import FAILED, MISCONFIGURED, OK, main
from tidework_operator.cluster import Kind


def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEWORK_NAMESPACES", "Not A Name")

    assert main([]) == MISCONFIGURED

    assert "TIDEWORK_NAMESPACES" in capsys.readouterr().err


def test_an_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--namespace", "shop"]) == MISCONFIGURED

    assert "unknown argument '--namespace'; see --help" in capsys.readouterr().err


def test_help_names_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == OK

    said = capsys.readouterr().out
    for name in ("REDIS_URL", "NAMESPACES", "CONNECTIONS", "LEASE_NAME", "STATE_DIR"):
        assert f"TIDEWORK_{name}\n" in said
    assert "comma-separated" in said


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == OK

    assert capsys.readouterr().out.startswith("tidework-operator ")


def test_no_cluster_is_a_matter_of_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEWORK_KUBECONFIG", str(tmp_path / "missing"))
    monkeypatch.setenv("TIDEWORK_LOG_FORMAT", "json")

    assert main([]) == MISCONFIGURED

    said = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert said["level"] == "error"
    assert "TIDEWORK_KUBECONFIG" in said["message"]


def test_a_part_that_fails_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(_: object) -> None:
        raise ExceptionGroup("parts", [RuntimeError("a defect")])

    monkeypatch.setattr(program, "run_operator", fail)

    assert main([]) == FAILED

    assert "a defect" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def keep_logging() -> object:
    """`main` configures the logs of the process; give them back."""
    import logging

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@asynccontextmanager
async def process(
    server: ApiServer, folder: Path, blocked: Iterable[signal.Signals]
) -> AsyncIterator[asyncio.subprocess.Process]:
    kubeconfig = folder / "config"
    kubeconfig.write_text(KUBECONFIG.format(url=server.url))
    environment = {
        **os.environ,
        "TIDEWORK_KUBECONFIG": str(kubeconfig),
        "TIDEWORK_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
        "TIDEWORK_PROBE_HOST": "127.0.0.1",
        "TIDEWORK_PROBE_PORT": "0",
        "TIDEWORK_LOG_FORMAT": "json",
        "TIDEWORK_CONNECTIONS": str(folder / "connections"),
        "NO_PROXY": "127.0.0.1",
        "POD_NAME": "operator-0",
        "POD_NAMESPACE": "tidework",
    }
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        found = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tidework_operator",
            env=environment,
            stderr=asyncio.subprocess.PIPE,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield found
    finally:
        if found.returncode is None:
            found.kill()
            await found.wait()


async def probes_port(found: asyncio.subprocess.Process) -> int:
    assert found.stderr is not None
    while line := await found.stderr.readline():
        said = json.loads(line)
        if "port" in said:
            port: int = said["port"]
            return port
    raise AssertionError("the operator ended before it listened")


@pytest.mark.parametrize(
    "blocked", [set(), signal.valid_signals()], ids=["", "its parent has blocked every signal"]
)
async def test_a_life_from_start_to_sigterm(
    tmp_path: Path, blocked: Iterable[signal.Signals]
) -> None:
    async with ApiServer(FakeCluster()) as server, asyncio.timeout(50):
        cluster = server.cluster
        cluster.put(
            Kind.TASK_QUEUE,
            {
                "metadata": {"namespace": "shop", "name": "emails"},
                "spec": {"app": "shop.tasks", "image": "shop:1"},
            },
        )
        async with process(server, tmp_path, blocked) as running:
            port = await probes_port(running)
            await until(lambda: server.watching == 2 and cluster.objects(Kind.LEASE), "it serves")
            (lease,) = cluster.objects(Kind.LEASE)
            assert lease["metadata"]["namespace"] == "tidework"
            assert lease["spec"]["holderIdentity"] == "operator-0"
            assert await asyncio.to_thread(get, port, "/livez") == (200, "ok\n")
            assert await asyncio.to_thread(get, port, "/readyz") == (200, "ok\n")
            _, numbers = await asyncio.to_thread(get, port, "/metrics")
            assert "tidework_operator_leader 1.0" in numbers

            running.send_signal(signal.SIGTERM)
            assert running.stderr is not None
            said = await running.stderr.read()
            assert await running.wait() == OK

        (lease,) = cluster.objects(Kind.LEASE)
        assert "holderIdentity" not in lease["spec"]
        assert b"released the Lease" in said
        assert b"Unclosed" not in said
