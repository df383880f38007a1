"""The tasks: `index` fans out one `measure` per file; the last file to be done asks for `report`.

Every job but the first has an id made from the run's (the id of its `index` job), so that any of
them may run twice: what it enqueues again is known already and enqueued once.
A file counts as done when it was measured or could not be parsed. One whose job died otherwise
(killed, out of memory) is never done: then `deadline` asks for the report, which names it.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from stdlib_index.measuring import UnparsableError, measure_source
from stdlib_index.page import write_page
from stdlib_index.record import Entry, Fault, RunRecord, connect
from stdlib_index.sources import find_sources
from tidework import Bury, Tidework, current_job
from tidework.errors import JobNotFoundError

DEADLINE = timedelta(minutes=10)

app = Tidework("stdlib-index", queue="index")


@app.task(max_attempts=3, delays=(1, 5))
def index() -> dict[str, str | int]:
    """Fan out. The CronTask fires this; every run of it is a run of the whole index."""
    run = current_job().id
    sources = find_sources()
    record_of(run).expect(source.name for source in sources)
    # First of all: whatever happens to this job, the run comes to an end.
    deadline.options(delay=DEADLINE, job_id=deadline_id(run)).enqueue_sync(run)
    measure.enqueue_many_sync(
        ({"run": run, **asdict(source)} for source in sources),
        job_ids=(f"{measure_prefix(run)}{_digest(source.name)}" for source in sources),
    )
    return {"run": run, "files": len(sources)}


@app.task(max_attempts=3, delays=(1, 5), timeout=60)
def measure(run: str, name: str, path: str) -> dict[str, int]:
    """Measure one file; one that does not parse is buried at once with the reason.

    name: of the file in the report; path: where it is
    """
    try:
        found = measure_source(name, Path(path).read_bytes())
    except UnparsableError as error:
        bring_together(run, name, Fault(str(error)))
        raise Bury(str(error)) from error
    except OSError as error:
        reason = f"{name}: cannot be read: {error.strerror or error}"
        bring_together(run, name, Fault(reason))
        raise Bury(reason) from error
    bring_together(run, name, found)
    return asdict(found)


@app.task(max_attempts=3, delays=(1, 5), timeout=60)
def report(run: str) -> str:
    """Write the page of a run; returns its path."""
    findings = record_of(run).read()
    if findings is None:
        raise Bury(f"run {run}: its numbers are gone, or it never was; run index again")
    folder = Path(os.environ.get("STDLIB_INDEX_OUT") or "out")
    path = write_page(folder.resolve(), run, findings, datetime.now(UTC))
    if not findings.missing:
        with suppress(JobNotFoundError):
            app.client.cancel_sync(deadline_id(run), queue=deadline.spec.queue)
    return str(path)


@app.task(max_attempts=3, delays=(1, 5))
def deadline(run: str) -> None:
    """The run has had its time: have the report written with what there is."""
    ask_for_report(run)


def bring_together(run: str, name: str, entry: Entry) -> None:
    """Note a file as done, and ask for the report if it was the last."""
    if record_of(run).note(name, entry):
        ask_for_report(run)


def ask_for_report(run: str) -> None:
    """Enqueue the run's one report; asked again, nothing happens."""
    report.options(job_id=report_id(run)).enqueue_sync(run)


def record_of(run: str) -> RunRecord:
    """The run's record, in the Redis that the queue is in."""
    return RunRecord(connect(app.client.settings.redis_url), run)


def measure_prefix(run: str) -> str:
    """What the ids of the run's measure jobs begin with."""
    return f"{run}.measure."


def report_id(run: str) -> str:
    """The id of the run's report job."""
    return f"{run}.report"


def deadline_id(run: str) -> str:
    """The id of the run's deadline job."""
    return f"{run}.deadline"


def _digest(name: str) -> str:
    """A file's name as part of a job id, which is short and allows no '/'."""
    return hashlib.blake2s(name.encode(), digest_size=6).hexdigest()
