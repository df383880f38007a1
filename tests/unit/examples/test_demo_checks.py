"""What the demonstration expects, and what it says when that does not hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demo_checks import Numbers, faults
from demo_watch import ScaleStep, Watch

STEPS = (ScaleStep(0, 1, "a"), ScaleStep(1, 3, "b"), ScaleStep(3, 0, "c"))


@pytest.fixture
def good(tmp_path: Path) -> Numbers:
    path = tmp_path / "index.html"
    path.write_text("")
    dead = {f"run.{number}": "x.py:1: no" for number in range(3)}
    return Numbers(10, 10, 7, dead, reports=1, report=str(path), unfinished=0, steps=STEPS)


def test_nothing_is_wrong_with_a_good_run(good: Numbers) -> None:
    assert list(faults(good)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"on_disk": 11}, "expected a job for each of 11 files, found 10 jobs"),
        ({"succeeded": 6}, "expected 10 files = succeeded + dead, found 6 + 3 = 9"),
        ({"succeeded": 8, "dead": {"a": "x", "b": "y"}}, "expected at least 3 dead files"),
        ({"dead": {"a": "x", "b": "y", "c": ""}}, "found none for c"),
        ({"reports": 2}, "expected exactly 1 report, found 2"),
        ({"report": "/nowhere/index.html"}, "found no file there"),
        ({"unfinished": 1}, "expected no unfinished jobs, found 1"),
        ({"steps": ()}, "expected workers to go 0 -> n -> 0, found no change"),
        ({"steps": STEPS[:2]}, "expected workers to go 0 -> n -> 0, found 0 -> 1 -> 3"),
        ({"steps": (ScaleStep(0, 0, "a"),)}, "found 0 -> 0"),
        ({"steps": (ScaleStep(0, 1, ""), ScaleStep(1, 0, "a"))}, "expected a reason"),
    ],
)
def test_each_fault_says_what_was_expected_and_found(
    good: Numbers, change: dict[str, Any], expected: str
) -> None:
    (found,) = faults(replace(good, **change))

    assert expected in found


def test_the_watch_knows_when_the_workers_are_gone() -> None:
    watch = Watch()
    seen = []
    events: list[dict[str, Any]] = [
        {"event": "started", "redis_url": "redis://x"},
        {"event": "fired", "crontask": "c", "verdict": "skipped_overlap", "job_id": ""},
        {"event": "fired", "crontask": "c", "verdict": "enqueued", "job_id": "run-1"},
        {"event": "scaled", "queue": "other", "before": 0, "after": 9, "reason": "x"},
        {"event": "scaled", "queue": "index", "before": 0, "after": 2, "reason": "work"},
        {"event": "status", "queue": "index", "workers": 2},
        {"event": "scaled", "queue": "index", "before": 2, "after": 0, "reason": "idle"},
        {"event": "status", "queue": "index", "workers": 0},
        {"event": "of another version"},
    ]
    for event in events:
        watch.note(event)
        seen.append(watch.went_down)

    assert (watch.redis_url, watch.run) == ("redis://x", "run-1")
    assert watch.steps == [ScaleStep(0, 2, "work"), ScaleStep(2, 0, "idle")]
    assert seen == [False] * 7 + [True] * 2
