"""Jobs as the tests of the worker need them."""

from __future__ import annotations

import time
from typing import Any

import redis

from tests.support.waiting import wait_until
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.client import Client
from tidework.errors import JobNotFoundError
from tidework.model.backlog import JobRecord
from tidework.model.identity import new_job_id
from tidework.model.job import Job, JobState
from tidework.model.statistics import ALL_TASKS, Totals


class Jobs:
    """The jobs of one queue."""

    def __init__(self, client: Client, queue: str = "jobs") -> None:
        self.client = client
        self.queue = queue

    def put(self, task: str, /, **params: Any) -> str:
        """Enqueue one."""
        return self.put_many(task, [params])[0]

    def put_many(self, task: str, many: list[dict[str, Any]], **fields: Any) -> list[str]:
        """Enqueue some at once, in order."""
        made = [
            Job(new_job_id(), task, params, created_at=time.time(), **fields) for params in many
        ]
        self.client.enqueue_sync(self.queue, made)
        return [job.id for job in made]

    def put_document(self, raw: bytes) -> None:
        """What a foreign program does with LPUSH."""
        self.put_documents(raw)

    def put_documents(self, *raws: bytes) -> None:
        """Several at once: the first is taken first."""
        key = f"tw1:{{{self.client.settings.namespace}/{self.queue}}}:inbox"
        with redis.Redis.from_url(self.client.settings.redis_url, protocol=2) as door:
            door.lpush(key, *raws)

    def totals(self, task: str = ALL_TASKS) -> Totals:
        """What the statistics say of the last hour."""
        broker = connect_blocking(self.client.settings.redis_url)
        try:
            found = drive(broker.statistics(self.client.queue(self.queue), task))
        finally:
            drive(broker.close())
        return Totals.of(each.hour for each in found)

    def listeners(self) -> int:
        """Connections of the namespace's server on which a command blocks."""
        with redis.Redis.from_url(self.client.settings.redis_url, protocol=2) as door:
            return int(door.info("clients")["blocked_clients"])

    def get(self, job_id: str) -> JobRecord:
        """What is known of it."""
        return self.client.get_sync(job_id, queue=self.queue)

    def result(self, job_id: str) -> Any:
        """Wait for its success."""
        return self.wait_state(job_id, JobState.SUCCEEDED).result

    def wait_dead(self, job_id: str) -> JobRecord:
        """Wait until it is a dead letter."""
        return self.wait_state(job_id, JobState.DEAD)

    def wait_state(self, job_id: str, *states: JobState) -> JobRecord:
        """Wait until it is in one of the states."""
        last: list[JobRecord] = []

        def look() -> JobRecord | None:
            try:
                last[:] = [self.get(job_id)]
            except JobNotFoundError:
                return None
            return last[0] if last[0].state in states else None

        what = f"job {job_id} is {' or '.join(states)}"
        return wait_until(look, what, story=lambda: f"it is {last}")
