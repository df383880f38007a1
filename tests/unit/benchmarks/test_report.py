"""From results to tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import pace, report
from benchmarks.ledger import Record
from benchmarks.program.work import END, START
from benchmarks.run import Result, rotated
from benchmarks.session import System
from benchmarks.stages import STAGES, WORKLOADS
from benchmarks.workloads import crash, idle


def test_figures_are_medians_over_the_rounds() -> None:
    results = [Result("a", index, {"io.rate": rate}) for index, rate in enumerate([3.0, 1.0, 2.0])]

    assert report.summarize(results, best_pace=0) == {"a": {"io.rate": 2.0}}


def test_cpu_times_and_rates_are_those_of_the_best_pace() -> None:
    figures = {"drain.2.cpu_us": 100.0, "drain.2.rate": 50.0, "drain.2.pace": 20.0, "io.rate": 7.0}

    assert pace.at_full_speed(figures, best=10.0) == {
        "drain.2.cpu_us": 50.0,
        "drain.2.rate": 100.0,
        "drain.2.speed": 50.0,
        "io.rate": 7.0,
    }


def test_cpu_jobs_are_compared_with_the_bare_processes_of_their_round() -> None:
    results = [
        Result("a", 0, {"cpu.rate": 90.0, "bare.rate": 100.0}),
        Result("a", 1, {"cpu.rate": 40.0, "bare.rate": 50.0}),
    ]

    assert report.summarize(results, 0)["a"]["cpu.percent"] == pytest.approx(85.0)


def test_a_table_has_what_was_measured_and_dashes_for_the_rest() -> None:
    summary = {"a": {"io.rate": 194.44}, "b": {"memory.small": 1234.0}}

    found = report.tables(summary, ["a", "b", "c"])

    assert "| a | 194.4 | - | - | - | - |\n" in found
    assert "| b | - | - | - | - | - | 1,234 | - |\n" in found
    assert "| c |" not in found
    assert "kill -9" not in found


def test_a_fault_is_told_by_its_first_line() -> None:
    results = [Result("a", 1, faults=["io: RuntimeError: no job ran:\nTraceback"])]

    assert report.faults(results) == "- a, round 2: io: RuntimeError: no job ran:\n"


def test_each_round_begins_with_another_system() -> None:
    systems = [System(name, name, Path()) for name in "abc"]

    assert [system.name for system in rotated(systems, 4)] == ["b", "c", "a"]


def test_every_column_has_a_figure_name_of_its_own() -> None:
    names = [column.figure for columns in report.TABLES.values() for column in columns]

    assert len(names) == len(set(names))
    assert {"drain-2", "crash", "growth"} <= set(WORKLOADS)
    assert all(set(stage.names) <= set(WORKLOADS) for stage in STAGES)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]

    assert idle.percentile(values, 0.99) == 99.0
    assert idle.percentile([5.0], 0.99) == 5.0
    assert idle.percentile([1.0, 2.0, 3.0], 1.0) == 3.0


def test_waits_belong_to_the_jobs_by_their_numbers() -> None:
    records = [Record(END, 11, 1, 5.5), Record(END, 10, 1, 6.0)]

    assert idle.waits([4.0, 5.0], 10, records) == [0.5, 2.0]


def test_held_jobs_start_again_or_the_limit_is_told() -> None:
    records = [Record(START, 1, 1, 9.0), Record(START, 1, 2, 21.0), Record(START, 2, 2, 22.0)]

    assert crash.again_after(records, [1, 2], killed_at=10.0, limit_s=30.0) == 12.0
    assert crash.again_after(records, [1, 3], killed_at=10.0, limit_s=30.0) == 30.0


def test_only_jobs_whose_turn_came_can_be_stuck() -> None:
    records = [Record(START, 5, 1, 1.0), Record(START, 3, 1, 1.0), Record(START, 99, 1, 1.0)]

    assert crash.whose_turn_came(records, range(2, 10)) == [2, 3, 4, 5]
