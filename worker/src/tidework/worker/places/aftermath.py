"""The aftermath of a child's death: the outcome of what it had begun, and the others back."""

from __future__ import annotations

import logging

from tidework.worker import process
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.outcomes import outcome_of_dead
from tidework.worker.places.turns import give_back

logger = logging.getLogger(__name__)


def settle_dead(link: ChildLink, code: int | None, now: float, *, is_told: bool) -> None:
    """Tell the sources of its jobs what became of them; ``is_told``: and the log of its end."""
    end = process.describe_exit(code)
    if is_told:
        cause = str(link.killed_for[0]) if link.killed_for else end
        extra = {"event": "child_ended", "slot": link.slot, "child": link.pid, "cause": cause}
        logger.warning("child ended", extra=extra)
    jobs = list(link.jobs.values())
    unharmed = [job for job in jobs if job.started_at is None and job.stop_reason is None]
    for job in jobs:
        if job in unharmed:
            continue
        outcome = outcome_of_dead(job, link.killed_for, link.why or end)
        seconds = None if job.started_at is None else max(0.0, now - job.started_at)
        if outcome is None:
            job.source.forget(job)
        else:
            job.source.settle(job, outcome, seconds)
    link.jobs.clear()
    give_back(unharmed)
