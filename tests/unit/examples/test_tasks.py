"""Fan-out and counter: whatever runs twice, each file counts once and there is one report.

The jobs are those of the memory broker, the record is kept on a real server.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stdlib_index import tasks
from stdlib_index.record import Fault, connect
from stdlib_index.sources import find_sources

from tidework import Bury, JobState, Settings
from tidework.model.current import CurrentJob, running_job
from tidework.testing.memory.broker import MemoryBroker

Enqueued = Callable[[JobState], list[str]]


@pytest.fixture
def run() -> str:
    return f"run-{secrets.token_hex(4)}"


@pytest.fixture(autouse=True)
def system(
    library: Path, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The application on a broker and a library of its own."""
    client = tasks.app.client
    monkeypatch.setattr(client, "_given", MemoryBroker())
    monkeypatch.setattr(client, "_settings", Settings(redis_url=redis_url))
    monkeypatch.setattr(tasks, "find_sources", lambda: find_sources(library, tmp_path / "none"))
    monkeypatch.setenv("STDLIB_INDEX_OUT", str(tmp_path / "out"))
    yield
    connect(redis_url).close()
    connect.cache_clear()


@pytest.fixture
def ids() -> Enqueued:
    """Ids of the jobs in one state."""
    return lambda state: list(tasks.app.client.jobs_sync("index", state).ids)


@contextmanager
def running(job_id: str) -> Iterator[None]:
    """As in a worker that runs this job."""
    until = datetime.now(UTC) + timedelta(minutes=1)
    token = running_job.set(CurrentJob(job_id, "index", "index", "default", 1, 3, until))
    yield
    running_job.reset(token)


def fan_out(run: str) -> None:
    with running(run):
        assert tasks.index() == {"run": run, "files": 3}


def measure(library: Path, run: str, name: str) -> None:
    """One attempt of a file's job."""
    if name == "beta/bad.py":
        with pytest.raises(Bury, match=r"^beta/bad.py:1: invalid syntax$"):
            tasks.measure(run, name, str(library / name))
    else:
        assert tasks.measure(run, name, str(library / name))["lines"] >= 1


NAMES = ["alpha.py", "beta/__init__.py", "beta/bad.py"]


def test_a_second_attempt_of_index_enqueues_nothing_twice(run: str, ids: Enqueued) -> None:
    fan_out(run)
    first = ids(JobState.READY)
    fan_out(run)

    assert len(first) == 3
    assert all(job_id.startswith(f"{run}.measure.") for job_id in first)
    assert ids(JobState.READY) == first
    assert ids(JobState.SCHEDULED) == [f"{run}.deadline"]


def test_an_attempt_that_died_halfway_is_made_up_for(
    run: str, ids: Enqueued, library: Path, tmp_path: Path
) -> None:
    halfway = find_sources(library, tmp_path / "none")[:2]
    with pytest.MonkeyPatch.context() as patch, running(run):
        patch.setattr(tasks, "find_sources", lambda: halfway)
        tasks.index()
    first = ids(JobState.READY)
    fan_out(run)

    assert len(first) == 2
    assert len(ids(JobState.READY)) == 3
    assert set(first) < set(ids(JobState.READY))


def test_two_runs_share_nothing(run: str, ids: Enqueued) -> None:
    fan_out(run)
    fan_out(f"{run}-b")

    assert len(ids(JobState.READY)) == 6


@pytest.mark.parametrize("last", NAMES)
def test_the_last_file_asks_for_the_one_report(
    library: Path, run: str, ids: Enqueued, last: str
) -> None:
    fan_out(run)
    for name in [name for name in NAMES if name != last]:
        measure(library, run, name)
        measure(library, run, name)  # its worker died before it could settle
    assert f"{run}.report" not in ids(JobState.READY)

    measure(library, run, last)
    assert ids(JobState.READY).count(f"{run}.report") == 1
    length = len(ids(JobState.READY))

    for name in NAMES:
        measure(library, run, name)
    assert len(ids(JobState.READY)) == length


def test_a_death_between_noting_the_last_file_and_asking_is_made_up_for(
    library: Path, run: str, ids: Enqueued, monkeypatch: pytest.MonkeyPatch
) -> None:
    fan_out(run)
    measure(library, run, "alpha.py")
    measure(library, run, "beta/bad.py")
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "ask_for_report", lambda _run: None)
        measure(library, run, "beta/__init__.py")
    assert f"{run}.report" not in ids(JobState.READY)

    measure(library, run, "beta/__init__.py")
    assert f"{run}.report" in ids(JobState.READY)


def test_the_report_is_written_and_calls_the_deadline_off(
    library: Path, run: str, ids: Enqueued, tmp_path: Path
) -> None:
    fan_out(run)
    for name in NAMES:
        measure(library, run, name)
    paths = {tasks.report(run), tasks.report(run)}  # a second attempt writes the same

    assert paths == {str(tmp_path / "out" / "index.html")}
    assert "beta/bad.py:1: invalid syntax" in Path(paths.pop()).read_text("utf-8")
    assert ids(JobState.SCHEDULED) == []
    assert ids(JobState.CANCELLED) == [f"{run}.deadline"]


def test_a_file_whose_job_died_does_not_hold_the_report_back_for_ever(
    library: Path, run: str, ids: Enqueued
) -> None:
    fan_out(run)
    measure(library, run, "alpha.py")
    tasks.deadline(run)
    tasks.deadline(run)
    assert ids(JobState.READY).count(f"{run}.report") == 1

    page = Path(tasks.report(run)).read_text("utf-8")
    assert "Nothing is known of these files (2)" in page
    assert "beta/__init__.py" in page
    assert ids(JobState.SCHEDULED) == [f"{run}.deadline"], "it may be running: it is left alone"


def test_a_file_that_is_gone_is_buried_with_the_reason(
    library: Path, run: str, redis_url: str
) -> None:
    fan_out(run)
    (library / "alpha.py").unlink()
    with pytest.raises(Bury, match=r"^alpha.py: cannot be read: No such file"):
        tasks.measure(run, "alpha.py", str(library / "alpha.py"))

    findings = tasks.record_of(run).read()
    assert findings is not None
    assert isinstance(findings.entries["alpha.py"], Fault)


def test_a_report_of_an_unknown_run_is_buried_with_the_reason() -> None:
    with pytest.raises(Bury, match="run nobody: its numbers are gone"):
        tasks.report("nobody")


def test_a_job_of_a_run_that_is_forgotten_asks_for_nothing(
    library: Path, run: str, ids: Enqueued
) -> None:
    measure(library, run, "alpha.py")

    assert ids(JobState.READY) == []


def test_what_the_record_keeps_ends_by_itself(library: Path, run: str, redis_url: str) -> None:
    fan_out(run)
    measure(library, run, "alpha.py")
    keys = list(connect(redis_url).scan_iter(f"*{run}*"))

    assert len(keys) == 2
    assert all(0 < connect(redis_url).ttl(key) <= 3600 for key in keys)
    assert not any(key.startswith("tw1:") for key in keys)
