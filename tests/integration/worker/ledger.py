"""What the jobs of apps/ledger.py wrote down of themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.integration.worker.jobs import Jobs
from tests.support.waiting import PATIENCE_S, wait_until
from tidework.model.job import JobState


class Ledger:
    """In ``folder``; its jobs are put into the queue of ``jobs``."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self._folder = folder
        self.jobs = jobs
        self.inbox = f"tw1:{{{jobs.client.queue(jobs.queue)}}}:inbox"

    def put(self, count: int, **params: Any) -> list[str]:
        """Enqueue so many jobs that write themselves down."""
        return self.jobs.put_many("work", [{"folder": str(self._folder), **params}] * count)

    def document(self, job_id: str) -> bytes:
        """The same as a foreign program would write it."""
        return b'{"id":"%s","task":"work","params":{"folder":"%s"}}' % (
            job_id.encode(),
            str(self._folder).encode(),
        )

    def let_end(self, name: str) -> None:
        """Jobs with ``until=name`` may end."""
        (self._folder / name).touch()

    def runs(self, what: str) -> Counter[str]:
        """Job id -> how often it ``began`` or ``ended``."""
        path = self._folder / "ledger"
        lines = path.read_text().splitlines() if path.exists() else []
        words = [line.split() for line in lines]
        return Counter(job_id for event, job_id in words if event == what)

    def wait(self, what: str, count: int, seconds: float = PATIENCE_S) -> None:
        """Until so many jobs began, or ended."""
        wait_until(lambda: len(self.runs(what)) >= count, f"{count} jobs {what}", seconds)

    def expect_each_once(self, ids: list[str], seconds: float = PATIENCE_S) -> None:
        """Every job of these succeeded, each in one run; no other ran, and none was ever lost."""
        client, queue = self.jobs.client, self.jobs.queue
        wait_until(
            lambda: client.stats_sync(queue).states[JobState.SUCCEEDED] >= len(ids),
            f"{len(ids)} jobs have succeeded",
            seconds,
        )
        once = dict.fromkeys(ids, 1)
        assert self.runs("began") == once
        assert self.runs("ended") == once
        stats = client.stats_sync(queue)
        assert stats.unfinished == 0
        assert {stats.counters.get(name, 0) for name in ("reaped", "lost", "lease_lost")} == {0}
