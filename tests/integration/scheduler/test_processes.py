"""Two scheduler processes on a real server: killed, frozen, thawed; the server killed too.

What is asserted is the state of the queue: every second from the first fire to the last has
exactly one job, whoever fired it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import pytest
import redis

from tests.support.servers import SURE, ValkeyServer
from tests.support.waiting import wait_until

PROGRAM = Path(__file__).with_name("program.py")
PATIENCE_S = 40.0

pytestmark = pytest.mark.timeout(120)


class SchedulerProcess:
    """A running program.py; its log lines are collected as they come."""

    def __init__(self, url: str, namespace: str, holder: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), url, namespace, holder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(json.loads(line) for line in self._process.stdout)

    def said(self, event: str) -> bool:
        return any(line.get("event") == event for line in list(self.lines))

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> dict[str, Any]:
        """Stop it in order; its last line."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=PATIENCE_S) == 0
        self._reader.join()
        return self.lines[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


class Scene:
    """A queue on a server, and the schedulers that fire into it."""

    def __init__(self, server: ValkeyServer, namespace: str, stack: ExitStack) -> None:
        self.server = server
        self._namespace = namespace
        self._stack = stack
        self._client = stack.enter_context(closing(server.client()))

    def start(self, holder: str) -> SchedulerProcess:
        made = SchedulerProcess(self.server.url, self._namespace, holder)
        return self._stack.enter_context(made)

    def key(self, part: str) -> str:
        return f"tw1:{{{self._namespace}/ticks}}:{part}"

    def fires(self) -> list[int]:
        """The fired seconds of all jobs in the queue."""
        try:
            found: Any = self._client.hkeys(self.key("jobs"))
        except redis.exceptions.ConnectionError:
            return []
        return sorted(int(raw.decode().removeprefix("tick-")) for raw in found)

    def counter(self, name: str) -> int:
        found: Any = self._client.hget(self.key("counters"), name)
        return int(found or 0)

    def wait_for_more_fires(self, more: int) -> None:
        goal = len(self.fires()) + more
        wait_until(lambda: len(self.fires()) >= goal, f"there were {goal} fires")

    def assert_one_job_per_second(self) -> None:
        fires = self.fires()
        assert fires == list(range(fires[0], fires[-1] + 1))
        record: Any = self._client.hmget(self.key("crons"), "tick/enqueued", "tick/watermark")
        assert [int(found) for found in record] == [len(fires), fires[-1]]
        assert self.counter("enqueued") == len(fires)


@pytest.fixture
def scene(valkey: ValkeyServer, namespace: str) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(valkey, namespace, stack)


def test_two_at_once_fire_once(scene: Scene) -> None:
    first, second = scene.start("a"), scene.start("b")
    scene.wait_for_more_fires(4)

    ends = [first.end(), second.end()]

    scene.assert_one_job_per_second()
    assert sum(end["fired"] for end in ends) == len(scene.fires())


def test_the_second_takes_over_when_the_first_is_killed(scene: Scene) -> None:
    first = scene.start("a")
    scene.wait_for_more_fires(2)
    second = scene.start("b")

    first.kill()
    wait_until(lambda: second.said("queue_led"), "the second leads")
    scene.wait_for_more_fires(3)

    assert second.end()["fired"] >= 3
    scene.assert_one_job_per_second()


def test_the_second_takes_over_after_an_orderly_end(scene: Scene) -> None:
    first = scene.start("a")
    scene.wait_for_more_fires(2)
    second = scene.start("b")

    first.end()
    scene.wait_for_more_fires(3)

    assert second.end()["fired"] >= 1
    scene.assert_one_job_per_second()


def test_leader_frozen_standby_fires_leader_thawed(scene: Scene) -> None:
    first = scene.start("a")
    scene.wait_for_more_fires(2)
    second = scene.start("b")

    first.signal(signal.SIGSTOP)
    wait_until(lambda: second.said("queue_led"), "the second leads")
    scene.wait_for_more_fires(3)
    first.signal(signal.SIGCONT)
    wait_until(lambda: first.said("write_fenced"), "the first was refused")
    scene.wait_for_more_fires(2)

    assert first.end()["fenced_writes"] == 1
    assert second.end()["fenced_writes"] == 0
    assert scene.counter("stale_terms") >= 1
    scene.assert_one_job_per_second()


def test_a_server_killed_and_restarted_costs_no_fire(namespace: str) -> None:
    with ValkeyServer(None, *SURE) as server, ExitStack() as stack:
        scene = Scene(server, namespace, stack)
        program = scene.start("a")
        scene.wait_for_more_fires(2)

        server.kill()
        wait_until(lambda: program.said("fires_waiting"), "the scheduler noticed")
        server.restart()
        wait_until(lambda: program.said("fires_resumed"), "the scheduler is back")
        scene.wait_for_more_fires(3)

        program.end()
        scene.assert_one_job_per_second()
