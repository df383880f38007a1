"""One server and what is played on it."""

from __future__ import annotations

import asyncio
from collections import Counter

import redis

from tidework.broker.connection.transport import BlockingTransport, drive
from tidework.broker.keys import QUEUE_PARTS, REGISTRY, queue_key
from tidework.model.identity import QueueName


class Stage:
    """One server and the connections to it, for all examples of a test."""

    def __init__(self, url: str, client: redis.Redis, namespace: str) -> None:
        self.transport = BlockingTransport(url)
        self.client = client
        self.runner = asyncio.Runner()
        self.requests: Counter[str] = Counter()
        self.transitions: Counter[str] = Counter()
        self.examples = 0
        self.steps = 0
        self._namespace = namespace

    def next_queue(self) -> QueueName:
        """A queue that was never used."""
        self.examples += 1
        return QueueName(f"{self._namespace}-{self.examples}", "q")

    def forget(self, queue: QueueName) -> None:
        """Delete all that the server keeps of it."""
        self.client.delete(*(queue_key(queue, part) for part in QUEUE_PARTS))
        self.client.srem(REGISTRY, str(queue))

    def summary(self) -> str:
        """How much was played, and what happened."""
        return "\n".join(
            (
                f"{self.examples} examples, {self.steps} steps, {self.requests.total()} requests",
                "requests: " + _told(self.requests),
                "transitions: " + _told(self.transitions),
            )
        )

    def close(self) -> None:
        """Give back connections."""
        drive(self.transport.close())
        self.runner.close()


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
