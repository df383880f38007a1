"""The pauses between starts of an embedded server that does not stay up."""

from __future__ import annotations

import asyncio
import errno
import io
import json
from typing import cast

import pytest

from tidework.dev import port
from tidework.dev.console import Console
from tidework.dev.server_guard import LONGEST_WAIT, LOOK_EVERY, STEADY_S, ServerGuard
from tidework.dev.valkey import EmbeddedValkey
from tidework.errors import ConfigurationError


class Server:
    """One that ends whenever the test says so."""

    def __init__(self) -> None:
        self.cause: str | None = "exit code 1"
        self.fault = ""
        self.starts = 0

    def exit_cause(self) -> str | None:
        return self.cause

    async def start(self) -> None:
        self.starts += 1
        if self.fault:
            raise ConfigurationError(self.fault)
        self.cause = None


class Scene:
    def __init__(self) -> None:
        self.server = Server()
        self.stream = io.StringIO()
        self.now = 100.0
        console = Console(as_json=True, stream=self.stream)
        self.guard = ServerGuard(cast("EmbeddedValkey", self.server), console, lambda: self.now)

    def tick(self) -> float:
        """One look; its wait, which is over when this returns."""
        wait = asyncio.run(self.guard.tick()).total_seconds()
        self.now += wait
        return wait

    def told(self, event: str) -> list[float]:
        found = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [each.get("wait", 0.0) for each in found if each["event"] == event]


def test_the_pauses_grow_while_it_does_not_come_up() -> None:
    scene = Scene()
    scene.server.fault = "its data cannot be read"
    waits = [scene.tick() for _ in range(9)]
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == LONGEST_WAIT.total_seconds()
    assert scene.told("server_down") == waits
    assert scene.server.starts == 9


def test_one_that_ends_again_at_once_is_not_started_five_times_a_second() -> None:
    scene = Scene()
    began = scene.now
    while scene.now < began + 30:
        scene.tick()
        scene.server.cause = "signal SIGKILL"
    assert scene.server.starts < 8
    assert scene.told("server_restarted")


def test_after_a_steady_time_it_is_started_at_once_again() -> None:
    scene = Scene()
    for _ in range(6):
        scene.tick()
        scene.server.cause = "signal SIGKILL"
    scene.server.cause = "signal SIGKILL"
    while scene.server.cause is not None:
        scene.tick()
    before = scene.server.starts
    scene.now += STEADY_S + 1
    assert scene.tick() == LOOK_EVERY.total_seconds()
    scene.server.cause = "signal SIGKILL"
    scene.tick()
    assert scene.server.starts == before + 1


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (errno.EACCES, "this user may not listen there (ports below 1024"),
        (errno.EADDRNOTAVAIL, "nothing can listen there: EADDRNOTAVAIL"),
    ],
)
def test_a_port_that_is_not_given_to_this_user_is_told(
    monkeypatch: pytest.MonkeyPatch, refusal: int, told: str
) -> None:
    monkeypatch.setattr(port, "_refusal_to_listen", lambda _: refusal)
    with pytest.raises(ConfigurationError) as found:
        asyncio.run(port.check_port(80))
    assert "--redis-port 80: " in str(found.value)
    assert told in str(found.value)
