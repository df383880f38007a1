"""Readmission: jobs that wait in a worker while another version of its application takes over."""

from __future__ import annotations

from collections.abc import Mapping

from tidework.errors import UnknownTaskError
from tidework.model.outcome import Outcome
from tidework.model.task import TaskSpec
from tidework.worker.admission import again_after
from tidework.worker.held import JobSource
from tidework.worker.modes import Modes


def readmit(source: JobSource, specs: Mapping[str, TaskSpec], modes: Modes) -> None:
    """Look at the waiting jobs of a source again; those that start are bounded as they were.

    A task that the new version does not have may be another worker's: its jobs are given back.
    """
    waiting = [job for line in source.lines for job in line]
    for line in source.lines:
        line.clear()
    for job in waiting:
        spec = specs.get(job.task)
        if spec is None:
            unknown = UnknownTaskError(job.task, tuple(specs))
            delay = again_after(job.claimed.releases)
            source.settle(job, Outcome.release(delay, str(unknown)), None)
            continue
        job.spec, job.mode = spec, modes.mode_of(job.task, job.claimed.losses)
        source.lines[job.mode].append(job)
