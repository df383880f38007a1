"""Readmission: jobs that wait in a worker while another version of its application takes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.worker.admission import Admission
from tidework.worker.held import JobSource
from tidework.worker.queue.modes import Modes


def readmit(
    source: JobSource,
    specs: Mapping[str, TaskSpec],
    modes: Modes,
    admit: Callable[[ClaimedJob], Admission | Outcome],
) -> None:
    """Look at the waiting jobs of a source again; those that start are bounded as they were.

    A task that the new version does not have may be another worker's: its jobs are released, as
    ``admit`` says.
    """
    waiting = [job for line in source.lines for job in line]
    for line in source.lines:
        line.clear()
    for job in waiting:
        spec = specs.get(job.task)
        if spec is None:
            found = admit(job.claimed)
            if isinstance(found, Outcome):
                source.settle(job, found, None)
            continue
        job.spec, job.mode = spec, modes.mode_of(job.task, job.claimed.losses)
        source.lines[job.mode].append(job)
