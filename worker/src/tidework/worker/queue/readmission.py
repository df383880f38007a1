"""Readmission: jobs that wait in a worker while another version of its application takes over."""

from __future__ import annotations

from collections.abc import Callable

from tidework.model.lease import ClaimedJob
from tidework.model.outcome import Outcome
from tidework.worker.admission import Admission
from tidework.worker.held import JobSource


def readmit(source: JobSource, admit: Callable[[ClaimedJob], Admission | Outcome]) -> None:
    """Look at the waiting jobs of a source again; those that start are bounded as they were.

    A task that the new version does not have may be another worker's: its jobs are released, as
    ``admit`` says.
    """
    for line in source.lines:
        for job in list(line):
            found = admit(job.claimed)
            if isinstance(found, Outcome):
                line.remove(job)
                source.settle(job, found, None)
            else:
                job.spec = found.spec
