"""Queues of one namespace seen from outside: jobs put in and looked at, through Redis alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import redis

from tests.e2e.apps.errands.errands.tasks import journal_key
from tests.e2e.support.installation import Installation
from tidework import Client, JobRecord, JobState, QueueStats, Settings
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.model.backlog import QueueLoad
from tidework.model.identity import QueueName, new_job_id
from tidework.model.job import Job

Entry = dict[str, Any]


class Store:
    """The SDK's client, with what the scenarios ask besides."""

    def __init__(self, url: str, namespace: str) -> None:
        self._namespace = namespace
        self._broker = connect_blocking(url)
        self._redis = redis.Redis.from_url(url)
        self._client = Client(Settings(redis_url=url, namespace=namespace), broker=self._broker)

    def close(self) -> None:
        """Give back its connections."""
        drive(self._broker.close())
        self._redis.close()

    def enqueue(self, queue: str, task: str, params: Sequence[Mapping[str, Any]]) -> list[str]:
        """A job for each of the params; their ids."""
        jobs = [Job(new_job_id(), task, given, max_attempts=1) for given in params]
        added = self._client.enqueue_sync(queue, jobs)
        assert all(added)
        return [job.id for job in jobs]

    def record(self, queue: str, job_id: str) -> JobRecord:
        """One job. Raises JobNotFoundError."""
        return self._client.get_sync(job_id, queue=queue)

    def result(self, queue: str, job_id: str, *, within: float) -> Any:
        """What a job gave back, once it has ended. Raises what `Client.result` does."""
        return self._client.result_sync(job_id, queue=queue, timeout=within)

    def stats(self, queue: str) -> QueueStats:
        """Lengths by state, and counters."""
        return self._client.stats_sync(queue)

    def load(self, queue: str) -> QueueLoad:
        """What the autoscaler gathers, the holders of leases among it."""
        return drive(self._broker.gather(QueueName(self._namespace, queue), horizon=timedelta(0)))

    def ids(self, queue: str, state: JobState) -> list[str]:
        """Of all jobs in this state."""
        found: list[str] = []
        cursor = None
        while True:
            page = self._client.jobs_sync(queue, state, cursor=cursor, limit=500)
            found += page.ids
            cursor = page.cursor
            if cursor is None:
                return found

    def journal(self, what: str | None = None) -> list[Entry]:
        """What the errands wrote, in order; only the entries that say `what`."""
        raw: Any = self._redis.lrange(journal_key(self._namespace), 0, -1)
        entries: list[Entry] = [json.loads(entry) for entry in raw]
        return [entry for entry in entries if what in (None, entry["what"])]


@contextmanager
def open_store(installation: Installation, namespace: str) -> Iterator[Store]:
    """Over a port that is forwarded meanwhile."""
    with installation.forwarded_url() as url:
        store = Store(url, namespace)
        try:
            yield store
        finally:
            store.close()
