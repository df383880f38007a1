"""A function as a task, run in this process as a child runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tidework.app import Tidework
from tidework.clock import ManualClock
from tidework.model.identity import QueueName
from tidework.model.outcome import Outcome
from tidework.worker.child.execution import Execution
from tidework.worker.frames import JobFrame


class FunctionRunner:
    """An Execution; ``run`` runs a function as a task in it."""

    def __init__(self) -> None:
        self._app = Tidework("test")
        self._execution = Execution(
            self._app.tasks, (QueueName("ns", "q"),), ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        )

    def run(
        self,
        function: Callable[..., Any],
        *,
        soft: float | None = None,
        attempt: int = 1,
        **params: Any,
    ) -> Outcome:
        """One attempt of three."""
        name = f"t{len(self._app.tasks)}"
        self._app.task(name=name, soft_timeout=soft)(function)
        envelope = {"v": 1, "id": "j1", "task": name, "params": params, "created_at": 1}
        body = json.dumps(envelope).encode()
        return self._execution.run(JobFrame(1, False, 0, attempt, 3, 60, body))

    def close(self) -> None:
        """Of its loop, if a task was a coroutine."""
        if self._execution._loop is not None:
            self._execution._loop.close()
