"""Log lines say job_id, task and queue, everywhere: what is called otherwise is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import log_fields
from tests.architecture.source import ROOT
from tidework.logs import FIELDS

FIRST = "import logging\n\nlogger = logging.getLogger(__name__)\n\n\n"


def planted(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "worker/src/tidework/planted.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FIRST + text)
    return [finding.text for finding in log_fields.check(tmp_path)]


def test_every_line_of_the_product_has_known_fields() -> None:
    assert log_fields.check(ROOT) == []


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('logger.info("fired", extra={"job": 1})', "field 'job' is not in"),
        (
            'extra = {"term": 1}\n    extra["Queue"] = 2\n    logger.info("x", extra=extra)',
            "'Queue'",
        ),
        ('extra = {"term": 1}\n    extra |= {"id": 2}\n    logger.info("x", extra=extra)', "'id'"),
        ('logger.info("x", extra={"term": 1} | {"seconds": 2})', "field 'seconds'"),
        ('logger.info("x", extra=told())', "field 'job'"),
        ('logger.info("x", extra=given)', "cannot be read"),
        ('logger.info("x", extra={given: 1})', "cannot be read"),
        ('logger.warning("queue %s rests", given)', "no field 'queue'"),
        ('logger.log(20, "CronTask %s rests", given)', "no field 'crontask'"),
        ('logger.info("x", extra={"job_id": given, "queue": 1})', "no field 'task'"),
    ],
)
def test_what_is_called_otherwise_or_left_out_is_found(
    tmp_path: Path, body: str, wrong: str
) -> None:
    other = 'def told():\n    return {"job": 1}\n\n\n'

    (found,) = planted(tmp_path, f"{other}def say(given):\n    {body}\n")

    assert wrong in found


def test_what_is_called_right_is_left_alone(tmp_path: Path) -> None:
    body = 'logger.info("job %s", 1, extra={"job_id": 1, "task": 2, "queue": 3})'

    assert planted(tmp_path, f"def say():\n    {body}\n") == []


def test_the_documentation_names_every_field() -> None:
    page = (ROOT / "docs/workers.md").read_text("utf-8").partition("\n## Logs\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("\n## ")[0], re.MULTILINE)

    assert dict(rows) == dict(FIELDS)
