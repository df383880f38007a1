"""`tidework cron next | explain | lint | import` and `tidework lint`: what they print, in full."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.documents import CRON, QUEUE
from tidework.cli.commands import root
from tidework.cli.cron_import import machine_zone
from tidework.errors import ConfigurationError, TideworkError
from tidework.model.schedules.cron import tzdata_version

SPRING = ("--time-zone", "America/New_York", "--after", "2026-03-07T12:00:00Z")
AUTUMN = ("--time-zone", "America/New_York", "--after", "2026-11-01T04:10:00Z")
MARCH = "--after=2026-03-01T00:00:00Z"


def run(*arguments: str, code: int = 0, **given: Any) -> str:
    """The output; both streams."""
    ended = CliRunner().invoke(root, arguments, **given)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    assert ended.exit_code == code, ended.output
    return ended.output


def refused(*arguments: str) -> str:
    with pytest.raises(TideworkError) as caught:
        run(*arguments)
    return str(caught.value)


@pytest.fixture
def in_shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(f"{QUEUE}---\n{CRON}")
    return tmp_path


def test_next_in_its_zone_and_mine(in_shanghai: None) -> None:
    assert run("cron", "next", "0 6 * * *", *SPRING, "-c", "2").splitlines() == [
        f"0 6 * * *   America/New_York, dst Once, tzdata {tzdata_version()}",
        "  Sun 2026-03-08 06:00:00 -0400   here Sun 2026-03-08 18:00:00 +0800",
        "  Mon 2026-03-09 06:00:00 -0400   here Mon 2026-03-09 18:00:00 +0800",
    ]


@pytest.mark.parametrize(
    ("dst", "moments", "rows"),
    [
        ("Once", SPRING, ["  Sun 2026-03-08 03:00:00 -0400", "  Mon 2026-03-09 02:30:00 -0400"]),
        ("Clock", SPRING, ["- Sun 2026-03-08 03:00:00 -0400", "  Mon 2026-03-09 02:30:00 -0400"]),
    ],
)
def test_next_shows_both_policies_where_they_differ(
    dst: str, moments: tuple[str, ...], rows: list[str]
) -> None:
    args = ("30 2 * * *", *moments, "--dst", dst, "-c", "2", "--here", "UTC")
    lines = run("cron", "next", *args).splitlines()
    assert [line.partition("   here")[0] for line in lines[1:3]] == rows
    assert lines[1].endswith("only under dst Once")
    assert not lines[2].endswith("only under dst Once")
    assert any(line.startswith("  (- does not fire") for line in lines) is (dst == "Clock")


def test_next_as_json() -> None:
    args = ("30 1 * * *", *AUTUMN, "-c", "2", "--here", "Asia/Tokyo", "-o", "json")
    (found,) = json.loads(run("cron", "next", *args))
    assert [(row["fire"], row["only"]) for row in found["fires"]] == [
        ("2026-11-01T01:30:00-04:00", None),
        ("2026-11-01T01:30:00-05:00", "Clock"),
        ("2026-11-02T01:30:00-05:00", None),
    ]
    assert found["fires"][0]["here"] == "2026-11-01T14:30:00+09:00"
    assert found["fires"][0]["utc"] == "2026-11-01T05:30:00+00:00"
    assert found["tzdata"] == tzdata_version()


def test_next_of_intervals_lists_names_and_excluded_days() -> None:
    here = ("--here", "UTC", "-c", "1", "--after", "2026-03-01T00:00:00Z")
    assert "00:01:30" in run("cron", "next", "--every", "90s", *here)
    assert "00:00:30" in run("cron", "next", "--every", "90s", "--phase", "30s", *here)
    assert "05:00:00" in run("cron", "next", "0 6 * * *", "0 5 * * *", *here)
    assert "2026-03-02 06:00" in run("cron", "next", "0 6 * * *", "--exclude", "03-01", *here)
    hashed = run("cron", "next", "H 6 * * *", "--name", "shop/nightly", *here)
    assert hashed == run("cron", "next", "H 6 * * *", "--name", "shop/nightly", *here)
    assert "06:00:00" not in hashed


def test_next_of_documents(files: Path) -> None:
    with (files / "shop.yaml").open("a") as file:
        file.write("  startTime: 2030-01-01T00:00:00Z\n  endTime: 2030-01-02T00:00:00Z\n")
    lines = run("cron", "next", "-f", str(files), "--here", "UTC", MARCH).splitlines()
    assert lines[0].startswith("nightly   UTC")
    assert [line.partition("   here")[0] for line in lines[1:]] == [
        "  Tue 2030-01-01 06:00:00 +0000"
    ]
    late = run("cron", "next", "-f", str(files), "--after", "2031-01-01T00:00:00Z")
    assert "it never fires again" in late


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "give a SCHEDULE in quotes"),
        (["0 6 * * *", "--every", "5m"], "one of the three"),
        (["0 6 * * *", "--phase", "5m"], "--phase shifts an interval"),
        (["0 6 * * *", "--time-zone", "Mars/Base"], "unknown time zone"),
        (["0 6 * * *", "--after", "tomorrow"], "write it as 2030-01-31T06:00:00Z"),
        (["0 6 * * *", "--after", "2030-01-31"], "has no zone"),
        (["0 25 * * *"], "0 25 * * *\n  ^ 25 is out of range\n  the hour field takes 0-23"),
        (["H 6 * * *"], "give --name NAMESPACE/NAME"),
        (["--every", "5m", "--phase", "H"], "give --name NAMESPACE/NAME"),
        (["--every", "5"], "is not an interval"),
        (["0 6 * * *", "--exclude", "25.12."], "neither a day nor a range"),
        (["--file", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
@pytest.mark.parametrize("command", ["next", "explain"])
def test_what_is_given_wrongly(command: str, arguments: list[str], reason: str) -> None:
    assert reason in refused("cron", command, *arguments)


def test_my_zone_has_to_be_one() -> None:
    assert "unknown time zone" in refused("cron", "next", "0 6 * * *", "--here", "Mars/Base")


def test_explain_tells_what_the_policies_do_at_the_next_changes() -> None:
    back = "the clock goes back from 02:00 to 01:00: fires at 01:30 EST under Clock only"
    assert run("cron", "explain", "30 1 * * *", *AUTUMN).splitlines() == [
        f"30 1 * * *   America/New_York, dst Once, tzdata {tzdata_version()}",
        "  At 01:30",
        f"  on 2026-11-01 {back}",
        f"  on 2027-11-07 {back}",
    ]
    chinese = run("cron", "explain", "*/20 2 * * *", "30 2 * * *", *SPRING, "-l", "zh")
    assert "每 20 分钟, 在 02:00 和 02:59 之间; 以及: 在 02:30" in chinese
    assert "2026-03-08 时钟拨快, 从 02:00 到 03:00: 03:00 EDT 触发, 仅在 Once 下" in chinese
    calm = run("cron", "explain", "0 6 * * *", *SPRING)
    assert "Once and Clock are the same to it for the next 400 days" in calm
    assert "相同" in run("cron", "explain", "0 6 * * *", "-l", "zh")


@pytest.mark.parametrize(
    ("schedule", "remark"),
    [
        ("0 0 13 * 5", "both day fields are given: a day that matches one of them is enough"),
        ("* 5 * * * *", "it fires every second of 1 minute of an hour, since the second is *"),
        ("* 2 * * *", "it fires every minute of 1 hour, since the minute is *"),
        ("* 2,3 * * *", "it fires every minute of 2 hours"),
        ("0 0 31 * *", "months without a day 31 are passed over; L is the last day of each"),
    ],
)
def test_lint_remarks_on_what_is_often_not_meant(schedule: str, remark: str) -> None:
    lines = run("cron", "lint", schedule, MARCH).splitlines()
    assert lines[0] == f"{schedule}: ok, but"
    assert len(lines) == 2
    assert remark in lines[1]


@pytest.mark.parametrize(
    "schedule", ["0 6 * * *", "*/5 * * * *", "3-59/10 * * * *", "0 0 L * *", "0 0 1 1 *", "@hourly"]
)
def test_lint_is_silent_about_what_is_plain(schedule: str) -> None:
    assert run("cron", "lint", schedule, MARCH) == f"{schedule}: ok\n"


def test_lint_looks_into_lists_and_below_exclusions() -> None:
    found = run("cron", "lint", "0 6 * * *", "*/7 * * * *", "--exclude", "12-25", MARCH)
    assert "the last gap is 4 minutes instead of 7" in found


def test_lint_tells_changes_of_the_clock() -> None:
    found = run("cron", "lint", "30 2 * * *", *SPRING)
    assert "dst: on 2026-03-08 the clock goes forward from 02:00 to 03:00" in found


def test_lint_refuses_with_a_mark_and_status_1() -> None:
    assert run("cron", "lint", "0 25 * * *", code=1).splitlines() == [
        "0 25 * * *",
        "  ^ 25 is out of range",
        "  the hour field takes 0-23",
    ]
    assert run("cron", "lint", "--every", "5m", "--exclude", "02-30", code=1).splitlines()[:2] == [
        "02-30",
        "  there is no such day",
    ]


def test_lint_of_documents(files: Path) -> None:
    assert run("lint", "--no-apps", str(files)) == (
        "TaskQueue default/emails: a cluster refuses it: spec.image: name the image with the "
        "application, which builds on tidework/worker\n"
        "1 TaskQueue(s), 1 CronTask(s): ok as documents; tasks and params were not checked in 1 "
        f"TaskQueue(s); tzdata {tzdata_version()}\n"
    )
    (files / "more.yaml").write_text(
        CRON.replace("nightly", "past").replace('schedule: "0 6 * * *"', "at: 2020-01-01T00:00:00Z")
        + "---\n"
        + CRON.replace("nightly", "often").replace("0 6 * * *", "*/7 * * * *")
    )
    lines = run("lint", str(files)).splitlines()
    assert "CronTask past: it never fires again from now on" in lines
    assert any(
        line.startswith("CronTask often: */7 in the minute field names 0, 7, 14, ..., 56")
        for line in lines
    )


def test_lint_of_documents_tells_every_fault_with_its_line(files: Path) -> None:
    wrong = CRON.replace("nightly", "wrong").replace("0 6 * * *", "0 25 * * *")
    (files / "wrong.yaml").write_text(f"{wrong}  timeZone: Mars/Base\n  retries: 3\n")
    lines = run("lint", str(files), code=1).splitlines()
    place = files / "wrong.yaml"
    assert [line.removeprefix(f"{place}:").partition(" ")[0] for line in lines] == [
        "8:",
        "9:",
        "10:",
    ]
    assert "spec.schedule: '0 25 * * *' at position 2: 25 is out of range" in lines[0]


def test_import_writes_files_and_tells_what_differs(tmp_path: Path) -> None:
    crontab = "@reboot /bin/a\n0 4 * * 7 /bin/b\n"
    args = ("cron", "import", "-", "-o", str(tmp_path), "-z", "Asia/Tokyo", "-n", "shop")
    output = run(*args, input=crontab, code=1)
    assert "line 1: left out: @reboot" in output
    assert "day of week 7 is written 0" in output
    assert "1 line(s) left out" in output
    assert "timeZone: Asia/Tokyo" in (tmp_path / "tidework.yaml").read_text()
    with pytest.raises(ConfigurationError, match="choose another --output"):
        run(*args, input=crontab)
    again = run(*args, "--overwrite", input="0 4 * * * /bin/b\n")
    assert again.startswith("1 CronTask(s) in")


def test_import_takes_the_zone_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    output = run("cron", "import", "-", "-o", str(tmp_path), input="0 4 * * * /bin/b\n")
    assert "using the zone of this machine: Asia/Tokyo" in output
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(os.path, "realpath", lambda _path: "/usr/share/zoneinfo/America/Lima")
    assert machine_zone() == "America/Lima"
    monkeypatch.setattr(os.path, "realpath", lambda path: path)
    assert machine_zone() == "UTC"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--queue", "Not Valid"], "--queue 'Not Valid' is not a DNS label"),
        (["--namespace", "Not Valid"], "--namespace 'Not Valid' is not a DNS label"),
        (["--module", "a-b"], "is not a name that Python can import"),
        (["--time-zone", "Mars/Base"], "unknown time zone"),
    ],
)
def test_import_refuses(arguments: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(TideworkError) as caught:
        run("cron", "import", "-", "-o", str(tmp_path), *arguments, input="0 4 * * * a\n")
    assert reason in str(caught.value)
    assert list(tmp_path.iterdir()) == []
