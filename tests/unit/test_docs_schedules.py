"""docs/schedules.md is true: its tables, its terminal sessions, its documents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from click.testing import CliRunner

from tests.support.documents import crontask
from tidework.cli.commands import root
from tidework.model.schedules.cron import DstPolicy, parse_cron, tzdata_version

PAGE = (Path(__file__).parents[2] / "docs/schedules.md").read_text("utf-8")
AFTER = datetime(2026, 11, 30, 12, tzinfo=UTC)


def rows(head: str) -> Iterator[list[str]]:
    """The cells of the table whose head begins so."""
    table = PAGE[PAGE.index(head) :].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def code(cell: str) -> str:
    found = re.match(r"`([^`]+)`", cell)
    assert found is not None, cell
    return found[1]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


FIELDS = list(rows("| schedule | the next fires"))
DST = list(rows("| zone | day | schedule"))


def test_the_tables_are_found() -> None:
    assert len(FIELDS) == 10
    assert len(DST) == 11
    assert len(blocks("console")) == 2
    assert len(blocks("yaml")) == 1


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: code(row[0]))
def test_fires_of_fields(row: list[str]) -> None:
    schedule, fires = row
    expected = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in fires.split(", ")]
    found = parse_cron(code(schedule)).between(AFTER, expected[-1], 100)
    assert found == expected


@pytest.mark.parametrize("row", DST, ids=lambda row: f"{row[0]} {code(row[2])}")
def test_daylight_saving(row: list[str]) -> None:
    zone, day, schedule, once, clock = row
    clock = once if clock == "the same" else clock
    for dst, cell in ((DstPolicy.ONCE, once), (DstPolicy.CLOCK, clock)):
        assert fires_on(day[:10], code(schedule), zone, dst, with_offset="-0" in cell) == cell


def fires_on(day: str, schedule: str, zone: str, dst: DstPolicy, *, with_offset: bool) -> str:
    """All fires of a day of the zone, as the table has them."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    cron = parse_cron(schedule, time_zone=zone, dst=dst)
    instant = midnight.astimezone(UTC)
    around = (instant - timedelta(days=1), instant + timedelta(days=2))
    walls = [fire.astimezone(midnight.tzinfo) for fire in cron.between(*around, 10_000)]
    form = "%H:%M%z" if with_offset else "%H:%M"
    return " ".join(f"{wall:{form}}" for wall in walls if f"{wall:%Y-%m-%d}" == day)


@pytest.mark.parametrize("session", blocks("console"))
def test_terminal_sessions(session: str) -> None:
    for part in session.split("$ ")[1:]:
        command, _, output = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "tidework"
        ended = CliRunner().invoke(root, arguments)
        assert ended.output == output.replace("tzdata 2026f", f"tzdata {tzdata_version()}"), command


@pytest.mark.parametrize("spec", list(yaml.safe_load_all(blocks("yaml")[0])))
def test_documents(spec: dict[str, Any]) -> None:
    assert crontask(**spec).to_schedule().next(AFTER) is not None


def test_other_sections_are_where_they_are_pointed_to() -> None:
    """Remarks of `migrate-cronjob` name one."""
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert {"From CronJob", "From crontab", "Daylight saving"} <= set(headings)
