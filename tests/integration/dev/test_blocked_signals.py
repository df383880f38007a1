"""Programs that a parent started with signals blocked end in order all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import QUEUE
from tests.support.fixtures import redis_url, valkey
from tests.support.waiting import wait_until

__all__ = ["redis_url", "valkey"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("scheduler", "shop.yaml", "--log-format", "json"), "queue_led"),
        (("dev", "shop.yaml", "--log-format", "json"), '"event": "started"'),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else None,
)
def test_sigterm_reaches_a_program_whose_parent_has_blocked_it(
    redis_url: str, tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    (tmp_path / "shop.yaml").write_text(QUEUE)
    (tmp_path / "shop.py").write_text('from tidework import Tidework\napp = Tidework("shop")\n')
    log = tmp_path / "log"
    environment = os.environ | {"TIDEWORK_NAMESPACE": "blocked"}
    if command[0] == "scheduler":
        environment["TIDEWORK_REDIS_URL"] = redis_url
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with log.open("wb") as output:
            program = subprocess.Popen(
                [sys.executable, "-m", "tidework", *command],
                cwd=tmp_path,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with program:
        try:
            wait_until(lambda: said in log.read_text(), story=log.read_text)
            program.terminate()
            assert program.wait(30) == 0, log.read_text()
        finally:
            program.kill()
