"""`tidework lint` looks into the applications that documents name, where it can."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.documents import CRON, QUEUE
from tidework.cli.commands import root
from tidework.model.schedules.cron import tzdata_version

APP = """
from tidework import Tidework

app = Tidework("shop")

@app.task
def send(to: str) -> None: ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(
        f"{QUEUE}---\n{CRON}".replace("shop.tasks", "shop\n  image: shop:1")
    )
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


def lint(folder: Path, code: int = 0) -> str:
    ended = CliRunner().invoke(root, ["lint", str(folder)], catch_exceptions=False)
    assert ended.exit_code == code, ended.output
    return ended.output


def give(folder: Path, task: str, params: str) -> None:
    """The CronTask gets another task and other params."""
    lines = (folder / "shop.yaml").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("  task:", "  params:"))]
    (folder / "shop.yaml").write_text("\n".join([*kept, f"  task: {task}", f"  params: {params}"]))


def test_documents_that_fit_their_application_are_ok(folder: Path) -> None:
    give(folder, "send", "{to: ada}")
    assert lint(folder) == f"1 TaskQueue(s), 1 CronTask(s): ok; tzdata {tzdata_version()}\n"


def test_a_typo_is_a_fault_with_what_was_meant(folder: Path) -> None:
    give(folder, "sned", "{}")
    assert "spec.task: the application has no task 'sned'; did you mean 'send'?" in lint(folder, 1)
    give(folder, "send", "{too: ada}")
    assert "spec.params: task 'send' does not take them: to: Field required" in lint(folder, 1)
    (folder / "shop.yaml").write_text(QUEUE.replace("shop.tasks", "shpo"))
    assert "spec.app: app 'shpo' was not found; did you mean 'shop'?" in lint(folder, 1)


def test_what_was_not_checked_is_not_called_ok(folder: Path) -> None:
    (folder / "shop.py").unlink()
    told = lint(folder)
    assert "not checked: " in told
    assert "app 'shop' was not found" in told
    assert "ok as documents; tasks and params were not checked in 1 TaskQueue(s)" in told
