"""`kubectl tidework migrate-cronjob`: from the cluster or a file into files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.fake_cluster import FakeCluster
from tidework.clock import ManualClock
from tidework.manifests import read_manifests
from tidework_operator.cluster import Kind
from tidework_operator.plugin.__main__ import run
from tidework_operator.plugin.session import Choice, Session

DATA = Path(__file__).parents[2] / "data/migration"
BACKUP = DATA / "cronjob-backup.yaml"


class Terminal:
    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, tzinfo=UTC))
        self.cluster = FakeCluster(self.clock)
        self.opened = 0
        self.folder = folder
        self._capsys = capsys

    def migrate(self, *arguments: str) -> tuple[int, str]:
        """The exit status and both streams."""
        given = ["migrate-cronjob", "--output", str(self.folder), *arguments]
        status = run(given, obj=self._open)
        return status, "".join(self._capsys.readouterr())

    @asynccontextmanager
    async def _open(self, choice: Choice) -> AsyncIterator[Session]:
        self.opened += 1
        yield Session(self.cluster, choice.namespace or "shop", self.clock)


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Terminal:
    return Terminal(capsys, tmp_path)


def names_in(folder: Path) -> list[str]:
    return [found.metadata.name for found in read_manifests([folder]).crontasks]


def test_a_cronjob_of_the_cluster(terminal: Terminal) -> None:
    document: dict[str, Any] = yaml.safe_load(BACKUP.read_text())
    stored = terminal.cluster.put(Kind.CRON_JOB, document)
    before = dict(stored)

    status, said = terminal.migrate("database-backup")

    assert status == 0, said
    assert "template.spec.serviceAccountName: is not carried over" in said
    assert names_in(terminal.folder) == ["database-backup"]
    assert (terminal.folder / "cronjob_tasks.py").is_file()
    assert terminal.cluster.objects(Kind.CRON_JOB) == [before]


def test_a_file_needs_no_cluster(terminal: Terminal) -> None:
    status, said = terminal.migrate(
        "--file", str(BACKUP), "--queue", "backups", "--module", "ops", "--image", "ops:1"
    )
    assert status == 0, said
    assert terminal.opened == 0
    (queue,) = read_manifests([terminal.folder]).queues
    assert (queue.metadata.name, queue.spec.app, queue.spec.image) == (
        "backups",
        "ops:app",
        "ops:1",
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "one of the two"),
        (["name", "--file", str(BACKUP)], "one of the two"),
        (["nowhere"], "no CronJob 'nowhere' in namespace shop"),
        (["--file", str(DATA / "shop.crontab")], "this is not a CronJob"),
        (["--file", str(BACKUP), "--queue", "A b"], "--queue 'A b' is not a DNS label"),
        (["--file", str(BACKUP), "--module", "a-b"], "is not a name that Python can import"),
    ],
)
def test_refused(terminal: Terminal, arguments: list[str], reason: str) -> None:
    status, said = terminal.migrate(*arguments)
    assert status == 2
    assert reason in said
    assert list(terminal.folder.iterdir()) == []


def test_a_file_that_is_no_yaml(terminal: Terminal, tmp_path: Path) -> None:
    terminal.folder = tmp_path / "out"
    (tmp_path / "broken.yaml").write_text("kind: [CronJob")
    status, said = terminal.migrate("--file", str(tmp_path / "broken.yaml"))
    assert status == 2
    assert "is not a YAML document" in said


def test_what_a_document_may_not_say_is_told_with_its_line(
    terminal: Terminal, tmp_path: Path
) -> None:
    document = yaml.safe_load(BACKUP.read_text())
    pod = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    pod["containers"][0]["env"] = [{"name": "not valid", "value": "1"}]
    file = tmp_path / "cronjob.yaml"
    file.write_text(yaml.safe_dump(document))
    terminal.folder = tmp_path / "out"

    status, said = terminal.migrate("--file", str(file))

    assert status == 1
    assert "to be corrected by hand:" in said
    assert "spec.env[0].name" in said
    assert (terminal.folder / "tidework.yaml").is_file()
