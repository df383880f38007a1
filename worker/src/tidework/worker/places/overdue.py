"""Overdue: looks at children, and passes the verdicts that are due. Asked by the pool's timer."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidework.worker.held import HeldJob, Verdict
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.dispatch import PATIENCE, START_LOOK, START_PATIENCE, give_back
from tidework.worker.places.loop_places import LoopPlaces
from tidework.worker.places.stopping import Stopping, is_over

READY_PATIENCE = 300.0
"""Seconds in which a child has to be ready: a fresh one imports the application first."""
RETIRE_PATIENCE = 5.0
"""Seconds in which a retired child has to end."""

logger = logging.getLogger(__name__)


class Overdue:
    """Of one pool.

    stopping:      what cancelled jobs are told
    kill_template: ends the template and all its children
    run:           sends waiting jobs into children
    """

    def __init__(
        self,
        loops: LoopPlaces,
        stopping: Stopping,
        kill_template: Callable[[], None],
        run: Callable[[], None],
    ) -> None:
        self._loops = loops
        self._stopping = stopping
        self._kill_template = kill_template
        self._run = run

    def look_at(self, link: ChildLink, now: float) -> float | None:
        """Pass the verdict if one is due; returns when to look at this child again."""
        if link.retired_at is not None:
            if now < link.retired_at + RETIRE_PATIENCE:
                return link.retired_at + RETIRE_PATIENCE
            link.force()
            return now + RETIRE_PATIENCE
        if link.pid is None:
            if now < link.ordered_at + START_PATIENCE:
                return link.ordered_at + START_PATIENCE
            logger.error("the template does not answer: another one is started")
            self._kill_template()
            return now + START_PATIENCE
        if link.killed_at is not None:
            return None
        if not link.ready:
            if now >= link.ordered_at + READY_PATIENCE:
                link.kill(Verdict.BROKEN, None, now)
            return link.ordered_at + READY_PATIENCE
        if link.places:
            return self._loops.look(link, now)
        if not link.jobs:
            return None
        return self._look_at_job(link, link.first, now)

    def _look_at_cancelled(self, link: ChildLink, job: HeldJob, now: float) -> float | None:
        if not is_over(job, now):
            return self._stopping.look_at(link, job, now)
        link.read()  # as below
        if job.number in link.jobs:
            extra = job.log_fields | {"child": link.pid}
            logger.warning("a job goes on after it was cancelled: it is killed", extra=extra)
            link.kill(Verdict.CANCELLED, job, now)
        return None

    def _look_at_job(self, link: ChildLink, job: HeldJob, now: float) -> float | None:
        if job.verdict is Verdict.CANCELLED:
            return self._look_at_cancelled(link, job, now)
        if job.started_at is None:
            if now >= job.sent_at + START_PATIENCE:
                link.kill(Verdict.BROKEN, None, now)  # stopped, or stuck in what a job left
                return None
            if now < job.sent_at + START_LOOK:
                return job.sent_at + START_LOOK
            link.ask_for(job)
            return job.sent_at + START_PATIENCE
        deadline = job.started_at + job.timeout
        if now >= deadline:
            link.read()  # it may have ended while we were not looking
            if job.number in link.jobs:
                link.kill(Verdict.TIMEOUT, job, now)
            return None
        if len(link.jobs) > 1:
            if now < job.started_at + PATIENCE:
                return min(deadline, job.started_at + PATIENCE)
            give_back(link.take_back())
            self._run()
        return deadline
