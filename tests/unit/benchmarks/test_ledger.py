"""What is read out of the records of jobs."""

from __future__ import annotations

import pytest

from benchmarks import ledger
from benchmarks.ledger import Record
from benchmarks.program.work import END, RECORD, START


def start(number: int, at: float, pid: int = 1) -> Record:
    return Record(START, number, pid, at)


def end(number: int, at: float, pid: int = 1) -> Record:
    return Record(END, number, pid, at)


def test_records_are_read_as_they_were_written_and_a_torn_one_is_left_out() -> None:
    data = RECORD.pack(START, 7, 4_000_000, 1.25) + RECORD.pack(END, 7, 4_000_000, 2.5)

    assert ledger.parse(data + b"E\0") == [start(7, 1.25, 4_000_000), end(7, 2.5, 4_000_000)]


def test_a_ledger_counts_and_gives_what_came_since_a_place() -> None:
    found = ledger.Ledger()
    try:
        for number in range(3):
            with found.path.open("ab") as file:
                file.write(RECORD.pack(END, number, 1, float(number)))

        assert len(found) == 3
        assert found.since(1) == [end(1, 1.0), end(2, 2.0)]
        assert found.wait(0, 3, limit_s=0) == found.since(0)
    finally:
        found.close()


def test_the_rate_of_ends_does_not_count_the_first() -> None:
    assert ledger.end_rate([end(1, 10.0), end(2, 10.5), end(3, 11.0)]) == pytest.approx(2.0)


def test_the_rate_of_jobs_is_from_the_first_start_to_the_last_end() -> None:
    records = [start(1, 0.0), start(2, 0.1), end(1, 1.0), end(2, 2.0)]

    assert ledger.job_rate(records) == pytest.approx(1.0)


def test_the_busy_share_is_the_slots_time_in_jobs_after_the_first_end() -> None:
    records = [start(1, 0.0), end(1, 1.0), start(2, 1.5), end(2, 2.0), start(3, 2.0), end(3, 3.0)]

    assert ledger.busy_share(records, slots=1) == pytest.approx(0.75)


def test_jobs_without_an_end_are_lost_and_those_with_two_are_doubled() -> None:
    records = [start(1, 0), end(1, 1), start(2, 0), end(3, 1), end(3, 2), end(9, 1), end(9, 2)]

    assert ledger.tally(records, [1, 2, 3, 4]) == ledger.Tally(lost=2, doubled=1)


def test_held_are_the_jobs_that_these_processes_started_and_did_not_end() -> None:
    records = [start(1, 0, 10), start(2, 0, 11), start(3, 0, 12), end(1, 1, 10), start(4, 1, 10)]

    assert ledger.held_by([10, 11], records) == {2, 4}
