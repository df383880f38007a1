"""The command line as a person calls it: a process of its own, its answer or its refusal."""

from __future__ import annotations

import os
import subprocess
import sys


class CommandLine:
    """Runs `tidework`, or one command of it (``before``), with a server and a namespace."""

    def __init__(self, redis_url: str, namespace: str, *before: str) -> None:
        self.redis_url = redis_url
        self.environment = {
            **os.environ,
            "TIDEWORK_REDIS_URL": redis_url,
            "TIDEWORK_NAMESPACE": namespace,
        }
        self._before = before

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tidework", *self._before, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ok(self, *arguments: str) -> str:
        ended = self.run(*arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def refused(self, *arguments: str) -> str:
        ended = self.run(*arguments)
        assert ended.returncode == 2, ended.stdout
        assert "Traceback" not in ended.stderr
        return ended.stderr
