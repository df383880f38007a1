"""Ids of jobs: 26 characters that sort by time, counting up within a millisecond."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from tidework.model.identity import is_job_id, new_job_id

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
FORK = """
import os
from tidework.model.identity import new_job_id
before = new_job_id()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, new_job_id().encode())
    os._exit(0)
os.wait()
print(before, new_job_id(), os.read(reader, 100).decode())
"""


def number_of(job_id: str) -> int:
    found = 0
    for character in job_id:
        found = found << 5 | ALPHABET.index(character)
    return found


def test_they_are_ids_and_sort_as_they_were_made() -> None:
    found = [new_job_id() for _ in range(5000)]

    assert sorted(set(found)) == found
    assert all(is_job_id(each) and re.fullmatch(f"[{ALPHABET}]{{26}}", each) for each in found)


def test_the_time_is_in_front_and_noise_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    ms = time.time_ns() // 1_000_000 + 3_600_000
    monkeypatch.setattr(time, "time_ns", lambda: ms * 1_000_000)
    monkeypatch.setattr(os, "urandom", lambda count: b"\xff" * count)

    first = number_of(new_job_id())

    assert divmod(first, 1 << 80) == (ms, (1 << 79) - 1)


def test_within_a_millisecond_they_count_up(monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time_ns() + 7_200_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)

    numbers = [number_of(new_job_id()) for _ in range(3000)]

    assert numbers == list(range(numbers[0], numbers[0] + 3000))
    monkeypatch.setattr(time, "time_ns", lambda: later - 3_600_000_000_000)
    assert number_of(new_job_id()) == numbers[0] + 3000, "a clock that was set back"


def test_a_fork_counts_on_from_a_place_of_its_own() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=30
    )

    assert len({each[10:24] for each in run.stdout.split()[1:]}) == 2
    assert len(set(run.stdout.split())) == 3
