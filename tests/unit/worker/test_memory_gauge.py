"""Where the limit is read from, and what counts as used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidework.worker.memory.gauge import WorkerGauge, find_gauge
from tidework.worker.memory.usage import MIB

UNLIMITED_V1 = 9223372036854771712


class Groups:
    """A folder of control groups, and the file that says which one is ours."""

    def __init__(self, folder: Path) -> None:
        self.membership = folder / "cgroup"
        self.root = folder / "fs"

    def belong(self, *lines: str) -> None:
        self.membership.write_text("".join(f"{line}\n" for line in lines))

    def v2(self, path: str, limit: int | str, used: int = 0, inactive: int = 0) -> None:
        self._write(path, {"memory.max": limit, "memory.current": used})
        self._write(path, {"memory.stat": f"anon 1\ninactive_file {inactive}\nslab 2"})

    def v1(self, path: str, limit: int, used: int = 0, inactive: int = 0) -> None:
        path = f"memory/{path}"
        self._write(path, {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": used})
        stat = f"inactive_file 5\ntotal_cache 1\ntotal_inactive_file {inactive}"
        self._write(path, {"memory.stat": stat})

    def _write(self, path: str, files: dict[str, int | str]) -> None:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n")

    def find(self, own: int | None = None) -> tuple[int, int | None] | None:
        """Limit, and what is used exactly."""
        gauge = find_gauge(own, self.membership, self.root)
        return None if gauge is None else (gauge.limit, gauge.used(0))


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    return Groups(tmp_path)


def test_version_2_in_a_namespace_of_its_own(groups: Groups) -> None:
    groups.belong("0::/")
    groups.v2("", 1000, used=700, inactive=150)

    assert groups.find() == (1000, 550)


def test_version_1_whose_group_is_not_seen_from_within(groups: Groups) -> None:
    groups.belong("4:memory:/kubepods/pod1/c1", "3:cpu:/kubepods/pod1/c1", "0::/")
    groups.v1("", 1000, used=700, inactive=150)

    assert groups.find() == (1000, 550)


def test_controllers_of_version_1_that_share_a_folder(groups: Groups) -> None:
    groups.belong("4:hugetlb,memory:/a")
    groups.v1("a", 500, used=1)

    assert groups.find() == (500, 1)


def test_the_smallest_limit_on_the_way_up_counts(groups: Groups) -> None:
    groups.belong("0::/slice/unit/inner")
    groups.v2("slice/unit/inner", "max")
    groups.v2("slice/unit", 3000, used=1)
    groups.v2("slice", 2000, used=2)

    assert groups.find() == (2000, 2)


def test_no_limit_is_no_gauge(groups: Groups) -> None:
    groups.belong("4:memory:/a", "0::/b")
    groups.v1("a", UNLIMITED_V1)
    groups.v2("b", "max")

    assert groups.find() is None


def test_no_control_groups_are_no_gauge(groups: Groups) -> None:
    assert groups.find() is None


def test_a_group_above_the_namespace(groups: Groups) -> None:
    groups.belong("0::/../../elsewhere")
    groups.v2("", 1000, used=10)

    assert groups.find() == (1000, 10)


def test_the_smaller_one_of_the_containers_and_the_given_limit_counts(groups: Groups) -> None:
    groups.belong("0::/")
    groups.v2("", 1000, used=10)

    assert groups.find(own=2000) == (1000, 10)
    found = groups.find(own=900)
    assert found is not None
    assert found[0] == 900


def test_inactive_pages_are_looked_up_only_when_it_matters(groups: Groups) -> None:
    groups.belong("0::/")
    groups.v2("", 1000, used=600, inactive=500)
    gauge = find_gauge(None, groups.membership, groups.root)
    assert gauge is not None

    assert [gauge.used(601), gauge.used(600)] == [600, 100]


def test_a_group_that_has_gone_tells_nothing(groups: Groups) -> None:
    groups.belong("0::/a")
    groups.v2("a", 1000)
    gauge = find_gauge(None, groups.membership, groups.root)
    assert gauge is not None
    (groups.root / "a" / "memory.current").unlink()

    assert gauge.used(0) is None


def test_the_worker_is_measured_itself() -> None:
    gauge = WorkerGauge(1 << 40)
    hoard = os.urandom(16 * MIB)

    rough, exact = gauge.used(1 << 40), gauge.used(0)

    assert rough is not None
    assert exact is not None
    assert len(hoard) < exact <= rough + 64 * MIB
