"""`tidework scheduler` whose Redis is full, a replica, loading or away: at its start, and later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.servers import ValkeyServer
from tests.support.troubles import NO_WRITES, Trouble, Troubled, troubled_server
from tests.support.waiting import wait_until
from tidework.client import Client
from tidework.errors import BrokerError
from tidework.settings import Settings

CRON = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: ticks}
spec: {app: shop}
---
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata: {name: tick}
spec: {queue: ticks, task: tick, every: 1s}
"""
PATIENCE_S = 40.0

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def redis() -> Iterator[Troubled]:
    with troubled_server() as found:
        yield found


class Program:
    """`tidework scheduler` as a person starts it; its log."""

    def __init__(self, url: str, folder: Path) -> None:
        (folder / "cron.yaml").write_text(CRON)
        self._log = folder / "scheduler.log"
        command = [sys.executable, "-m", "tidework", "scheduler", "cron.yaml", "--redis-url", url]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=log,
                stderr=log,
                env={k: v for k, v in os.environ.items() if not k.startswith("TIDEWORK_")},
            )

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until(self, holds: Callable[[], object], what: str) -> None:
        wait_until(holds, what, PATIENCE_S, story=lambda: self.text)

    def wait_said(self, words: str) -> None:
        self.wait_until(lambda: words in self.text, f"it said {words!r}")

    def terminate(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        return self._process.wait(timeout=PATIENCE_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Program]]:
    started: list[Program] = []

    def run(url: str) -> Program:
        started.append(Program(url, tmp_path))
        return started[-1]

    yield run
    for program in started:
        program.kill()


def has_fired(url: str) -> bool:
    client = Client(Settings(redis_url=url))
    try:
        return client.queue_length_sync("ticks") > 0
    except BrokerError:
        return False
    finally:
        client.close_sync()


@pytest.mark.parametrize("trouble", NO_WRITES)
def test_it_waits_until_redis_serves_and_says_so(
    redis: Troubled, start: Callable[[str], Program], trouble: Trouble
) -> None:
    redis.begin(trouble)
    program = start(redis.url)
    program.wait_said("queue default/ticks cannot be opened yet: Redis at ")
    assert trouble.value in program.text
    redis.mend(trouble)

    program.wait_said("Redis answers: queue default/ticks is open")
    program.wait_until(lambda: has_fired(redis.url), "the CronTask fired")

    assert program.terminate() == 0
    assert "Traceback" not in program.text


def test_a_redis_that_refuses_it_is_not_waited_for(start: Callable[[str], Program]) -> None:
    with ValkeyServer(None, "--requirepass", "secret") as guarded:
        program = start(guarded.url)

        assert program.wait() == 2

    (line,) = program.text.splitlines()
    assert line.startswith("tidework: Redis at ")
    assert "refuses the credentials" in line


@pytest.mark.parametrize("trouble", NO_WRITES)
def test_it_ends_at_sigterm_while_it_waits(
    redis: Troubled, start: Callable[[str], Program], trouble: Trouble
) -> None:
    redis.begin(trouble)
    program = start(redis.url)
    program.wait_said("next attempt")

    assert program.terminate() == 0
    assert "Traceback" not in program.text
    redis.mend(trouble)


def test_on_a_full_server_it_leads_and_its_fires_wait(
    redis: Troubled, start: Callable[[str], Program]
) -> None:
    redis.begin(Trouble.FULL)
    program = start(redis.url)
    program.wait_said("fires of queue default/ticks have to wait: Redis at ")
    assert Trouble.FULL.value in program.text
    assert "leads queue default/ticks" in program.text
    redis.mend(Trouble.FULL)

    program.wait_said("queue default/ticks is served again")
    program.wait_until(lambda: has_fired(redis.url), "the CronTask fired")

    assert program.terminate() == 0


@pytest.mark.parametrize("trouble", Trouble)
def test_fires_wait_until_redis_serves_again(
    redis: Troubled, start: Callable[[str], Program], trouble: Trouble
) -> None:
    program = start(redis.url)
    program.wait_until(lambda: has_fired(redis.url), "the CronTask fired")

    redis.begin(trouble)
    program.wait_said("fires of queue default/ticks have to wait: Redis at ")
    assert trouble.value in program.text
    redis.mend(trouble)

    program.wait_said("queue default/ticks is served again")
    assert program.terminate() == 0
    assert "Traceback" not in program.text
