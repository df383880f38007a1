"""Log lines say job_id, task and queue, everywhere, and name their event."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import log_fields
from tests.architecture.source import ROOT
from tidework.log_events import EVENTS
from tidework.logs import FIELDS

FIRST = "import logging\n\nlogger = logging.getLogger(__name__)\n\n\n"


def planted(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "worker/src/tidework/planted.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FIRST + text)
    return [finding.text for finding in log_fields.check(tmp_path)]


FIRED = '{"event": "fired"}'


def test_every_line_of_the_product_has_known_fields_and_an_event() -> None:
    assert log_fields.check(ROOT) == []


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (f'logger.info("x", extra={FIRED} | {{"job": 1}})', "field 'job' is not in"),
        (f'extra = {FIRED}\n    extra["Queue"] = 2\n    logger.info("x", extra=extra)', "'Queue'"),
        (f'extra = {FIRED}\n    extra |= {{"id": 2}}\n    logger.info("x", extra=extra)', "'id'"),
        (f'logger.info("x", extra={FIRED} | {{"seconds": 2}})', "field 'seconds'"),
        (f'logger.info("x", extra={{**{FIRED}, **told()}})', "field 'job'"),
        ('logger.info("x", extra=given)', "cannot be read"),
        ('logger.info("x", extra={given: 1})', "cannot be read"),
        (f'logger.warning("queue %s rests", given, extra={FIRED})', "no field 'queue'"),
        (f'logger.log(20, "CronTask %s rests", given, extra={FIRED})', "no field 'crontask'"),
        (f'logger.info("x", extra={FIRED} | {{"job_id": 1, "queue": 1}})', "no field 'task'"),
        ('logger.info("x")', "names no event"),
        ('logger.info("x", extra={"term": 1})', "names no event"),
        ('logger.info("x", extra={"event": "Fired"})', "event 'Fired' is not in"),
        ('logger.info("x", extra={"event": "fired" if given else "fierd"})', "event 'fierd'"),
        ('event = "fierd"\n    logger.info("x", extra={"event": event})', "event 'fierd'"),
        ('text, event = TABLE[given]\n    logger.info(text, extra={"event": event})', "'tabled'"),
        ('extra = {}\n    extra["event"] = "fierd"\n    logger.info("", extra=extra)', "'fierd'"),
        ('logger.info("x", extra={"event": given})', "cannot be read"),
        ('logger.info("x", extra={"event": given.word})', "cannot be read"),
    ],
)
def test_what_is_called_otherwise_or_left_out_is_found(
    tmp_path: Path, body: str, wrong: str
) -> None:
    other = 'TABLE = {1: ("x", "tabled")}\n\n\ndef told():\n    return {"job": 1}\n\n\n'

    (found,) = planted(tmp_path, f"{other}def say(given):\n    {body}\n")

    assert wrong in found


def test_what_is_called_right_is_left_alone(tmp_path: Path) -> None:
    fields = '{"event": "fired", "job_id": 1, "task": 2, "queue": 3}'
    body = f'logger.info("job %s", 1, extra={fields})'

    assert planted(tmp_path, f"def say():\n    {body}\n") == []


def test_an_event_that_no_line_names_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_fields, "EVENTS", {"fired": "", "unused": ""})
    table = tmp_path / log_fields.TABLE
    table.parent.mkdir(parents=True)
    table.write_text("")

    (found,) = planted(tmp_path, f'def say():\n    logger.info("x", extra={FIRED})\n')

    assert "'unused'" in found


def test_the_documentation_names_every_field_and_event() -> None:
    page = (ROOT / "docs/logs.md").read_text("utf-8")
    fields, _, events = page.partition("\n## Events\n")

    assert rows(fields) == dict(FIELDS)
    assert rows(events) == dict(EVENTS)


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
