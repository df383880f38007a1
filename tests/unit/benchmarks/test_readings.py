"""What is read out of /proc, INFO and MONITOR."""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest

from benchmarks import machine, processes
from benchmarks.processes import ProcessStat
from benchmarks.profiling import profile
from benchmarks.server import parse_reading, parse_request


def stat(pid: int, parent: int, cpu: float = 0.0, reaped: float = 0.0) -> ProcessStat:
    return ProcessStat(pid, parent, "S", pid, cpu, 0.0, reaped, 0.0)


def test_a_stat_is_read_behind_a_name_that_looks_like_one() -> None:
    fields = ["S", "7"] + ["0"] * 9 + ["100", "50", "20", "10"] + ["0"] * 4 + ["12345"]
    found = processes.parse_stat(f"42 (a) S 1 (b) {' '.join(fields)}")

    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert (found.pid, found.parent, found.state, found.started) == (42, 7, "S", 12345)
    assert found.cpu == pytest.approx(150 * tick)
    assert found.kernel == pytest.approx(50 * tick)
    assert found.reaped_cpu == pytest.approx(30 * tick)


def test_this_process_is_among_all_and_its_own_tree() -> None:
    everything = processes.read_all()

    assert os.getpid() in [found.pid for found in processes.tree_of([os.getpid()], everything)]


def test_a_tree_is_its_roots_and_what_descends_from_them() -> None:
    everything = {s.pid: s for s in (stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 1), stat(5, 9))}

    assert [found.pid for found in processes.tree_of([2, 5, 77], everything)] == [2, 5, 3]


def test_the_cpu_time_of_a_tree_has_that_of_reaped_children() -> None:
    assert processes.cpu_of([stat(1, 0, 1.0, 0.5), stat(2, 1, 0.25)]) == pytest.approx(1.75)


def test_pss_is_bytes() -> None:
    assert processes.parse_pss("Rss:  9 kB\nPss:     12 kB\nPss_Anon: 4 kB\n") == 12 * 1024


def test_what_the_scheduler_counted_is_seconds() -> None:
    assert processes.parse_schedstat("2500000000 17 42\n") == 2.5


def test_the_exact_time_of_a_tree_grows_with_what_it_does() -> None:
    tree = [processes.read_all()[os.getpid()]]
    before, ends_at = processes.exact_cpu_of(tree), time.process_time() + 0.02
    while time.process_time() < ends_at:
        pass

    assert 0.01 < processes.exact_cpu_of(tree) - before < 5


def test_memory_is_without_buffers_of_clients_and_of_the_append_only_file() -> None:
    found = parse_reading(
        {
            "used_cpu_user": 1.0,
            "used_cpu_sys": 0.5,
            "used_memory": 1000,
            "mem_clients_normal": 100,
            "mem_aof_buffer": 10,
            "cmdstat_get": {"calls": 3, "usec": 9, "usec_per_call": 3.0},
        }
    )

    assert found.cpu == 1.5
    assert found.memory == 890
    assert found.calls == Counter(get=3)
    assert found.microseconds == Counter(get=9)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b'+1.5 [0 127.0.0.1:60866] "EVALSHA" "[0 lua] \\"x\\""', "evalsha"),
        (b'+1.5 [0 lua] "zadd" "key" "1" "a"', None),
        (b"OK", None),
    ],
)
def test_requests_of_clients_are_told_from_calls_of_scripts(
    line: bytes, command: str | None
) -> None:
    assert parse_request(line) == command


def test_the_cpu_is_named_by_its_model() -> None:
    assert machine.cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == (
        "Some CPU @ 2 GHz"
    )


def test_the_stolen_share_is_of_the_time_between_two_looks() -> None:
    first = "cpu 100 0 100 100 0 0 0 50 0 0\n"
    last = "cpu 150 0 120 120 0 0 0 60 0 0\n"

    assert machine.steal_share(first, last) == pytest.approx(0.1)


def test_a_profile_divides_the_time_between_the_root_and_the_others() -> None:
    before = [stat(1, 0, 1.0), stat(2, 1, 1.0, reaped=1.0), stat(3, 2, 0.5)]
    after = [stat(1, 0, 1.5), stat(2, 1, 1.0, reaped=2.0), stat(4, 2, 0.25)]

    found = profile.divide(before, after, jobs=1_000_000)

    assert found["supervisor"][0] == pytest.approx(0.5)
    assert found["child"][0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("command", "forks", "role"),
    [
        (["tidework", "worker"], 0, "supervisor"),
        (["tidework", "worker"], 1, "template"),
        (["tidework", "worker"], 2, "child"),
        (["python", "-m", "tidework.worker.child.template", "5"], 0, "template"),
        (["python", "-m", "tidework.worker.child.template", "5"], 1, "child"),
        (["python", "program/produce.py"], 0, "producer"),
    ],
)
def test_a_process_is_told_by_its_command_and_its_forks(
    command: list[str], forks: int, role: str
) -> None:
    assert profile.role_of({"command": command, "forks": forks}) == role
