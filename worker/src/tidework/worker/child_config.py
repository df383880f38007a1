"""What a worker's processes have to know. Apart from their code, which the supervisor lacks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from tidework.logs import configure_logs
from tidework.model.identity import QueueName
from tidework.settings import LogFormat, LogLevel, WorkerSettings


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """What template and children have to know; travels as JSON.

    has_loop: the worker has places on an event loop, not slots
    """

    app: str
    worker: str
    namespace: str
    queues: tuple[str, ...]
    has_loop: bool
    log_format: LogFormat
    log_level: LogLevel

    @classmethod
    def of(cls, settings: WorkerSettings) -> Self:
        """What a worker's settings say."""
        return cls(
            app=settings.app,
            worker=settings.worker_name,
            namespace=settings.namespace,
            queues=settings.queue,
            has_loop=settings.has_loop,
            log_format=settings.log_format,
            log_level=settings.log_level,
        )

    def to_json(self) -> str:
        """For the command line of a fresh child."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> ChildConfig:
        """Read what ``to_json`` wrote."""
        found = json.loads(text)
        return cls(**{**found, "queues": tuple(found["queues"])})

    def queue_names(self) -> tuple[QueueName, ...]:
        """The worker's queues in the order in which frames count them."""
        return tuple(QueueName(self.namespace, name) for name in self.queues)

    def configure_logs(self) -> None:
        configure_logs(self.log_format, self.log_level, worker=self.worker)
