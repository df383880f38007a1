"""Last chances: jobs that one more loss would bury do not meet in a worker. Pure.

A job that brings down its whole container (the kernel's OOM killer) takes its neighbours with it,
and being alone in a process does not help these: claimed together again and again they would be
buried with it. So a worker runs one such job at a time and gives the others back, uncounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.worker.admission import again_after
from tidework.worker.held import JobSource
from tidework.worker.queue.waiting import KEPT_AFTER

_REASON = "one more loss would be its last: it does not run beside another such job"


def keep_apart(
    claimed: Sequence[ClaimedJob], sources: Iterable[JobSource], poison_cap: int
) -> dict[str, Outcome]:
    """Which of the jobs just claimed are to be released, by id.

    sources: all of the worker; what they hold besides counts too
    """
    least = max(1, poison_cap - 1)
    last = [job for job in claimed if job.losses >= least and job.releases < KEPT_AFTER]
    if not last:
        return {}
    ids = {job.id for job in claimed}
    others = [job for source in sources for job in source.held.values() if job.id not in ids]
    is_taken = any(job.claimed.losses >= least and job.outcome is None for job in others)
    if len(last) == 1 and not is_taken:
        return {}
    found = {job.id: Outcome.release(again_after(job.releases), _REASON) for job in last}
    if not is_taken:
        # The first one too, for no time: the exchange that releases the others brings it again,
        # so that these are not ours any more when it begins.
        found[last[0].id] = Outcome.release(reason=_REASON)
    return found
