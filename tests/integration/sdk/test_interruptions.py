"""A signal handler that raises at any step of an enqueue ends that enqueue, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

INTERRUPTIONS = 1500
"""Three times as many as a C function that runs Python code has survived."""


@pytest.mark.parametrize("way", ["hiredis", "plain"])
def test_a_handler_that_raises_harms_no_other_enqueue(
    redis_url: str, namespace: str, way: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.integration.sdk.interrupted"]
        + [redis_url, namespace, str(INTERRUPTIONS), way],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert run.returncode == 0, f"{run.returncode}: {run.stderr[-2000:]}"
    enqueued, others = run.stdout.split(maxsplit=1)
    assert int(enqueued) > INTERRUPTIONS / 10, "it was not interrupted all the time"
    assert others.strip() == "{}", "nothing else was raised"
