"""The demonstration's own numbers: read through the client, compared with what is on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo_watch import QUEUE, ScaleStep
from stdlib_index.tasks import measure_prefix, report_id

from tidework import Client, JobState

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is left of a run when it is over.

    on_disk:    files that the demonstration itself finds
    files:      files that the index job fanned out
    succeeded:  measure jobs that ended well; dead: id -> reason of those that did not
    reports:    report jobs that ended well, of all runs; report: path that this run's returned
    unfinished: jobs that have not ended
    steps:      what the autoscaler decided
    """

    on_disk: int
    files: int
    succeeded: int
    dead: dict[str, str]
    reports: int
    report: str
    unfinished: int
    steps: Sequence[ScaleStep]


async def gather(client: Client, run: str, on_disk: int, steps: Sequence[ScaleStep]) -> Numbers:
    """Count job by job, trusting no total that anybody else made."""
    succeeded = await _ids(client, JobState.SUCCEEDED)
    index = await client.get(run, queue=QUEUE)
    report = await client.get(report_id(run), queue=QUEUE)
    dead = {}
    for job_id in await _ids(client, JobState.DEAD):
        if job_id.startswith(measure_prefix(run)):
            error = (await client.get(job_id, queue=QUEUE)).error
            dead[job_id] = error.message if error else ""
    return Numbers(
        on_disk=on_disk,
        files=index.result["files"],
        succeeded=sum(job_id.startswith(measure_prefix(run)) for job_id in succeeded),
        dead=dead,
        reports=sum(job_id.endswith(report_id("")) for job_id in succeeded),
        report=report.result,
        unfinished=(await client.stats(QUEUE)).unfinished,
        steps=steps,
    )


async def _ids(client: Client, state: JobState) -> list[str]:
    page = await client.jobs(QUEUE, state, limit=PAGE)
    found = list(page.ids)
    while page.cursor is not None:
        page = await client.jobs(QUEUE, state, cursor=page.cursor, limit=PAGE)
        found += page.ids
    return found


def faults(found: Numbers) -> Iterator[str]:
    """Every expectation that does not hold: what was expected and what was found."""
    ended = found.succeeded + len(found.dead)
    if found.files != found.on_disk:
        yield f"expected a job for each of {found.on_disk} files, found {found.files} jobs"
    if ended != found.files:
        yield (
            f"expected {found.files} files = succeeded + dead, "
            f"found {found.succeeded} + {len(found.dead)} = {ended}"
        )
    if len(found.dead) < 3:
        yield f"expected at least 3 dead files (3 broken ones are shipped), found {len(found.dead)}"
    for job_id, reason in found.dead.items():
        if not reason:
            yield f"expected a reason for every dead file, found none for {job_id}"
    if found.reports != 1:
        yield f"expected exactly 1 report, found {found.reports}"
    if not Path(found.report).is_file():
        yield f"expected the report at {found.report}, found no file there"
    if found.unfinished:
        yield f"expected no unfinished jobs, found {found.unfinished}"
    yield from _scale_faults(found.steps)


def _scale_faults(steps: Sequence[ScaleStep]) -> Iterator[str]:
    counts = [steps[0].before, *(step.after for step in steps)] if steps else []
    if not counts or counts[0] != 0 or max(counts) == 0 or counts[-1] != 0:
        way = " -> ".join(map(str, counts)) or "no change"
        yield f"expected workers to go 0 -> n -> 0, found {way}"
    if not all(step.reason for step in steps):
        yield "expected a reason for every change of the workers, found one without"
