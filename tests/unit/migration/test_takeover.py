"""The files of a migration: the commands run, their exit codes are outcomes, nothing is lost."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tidework import Tidework
from tidework.errors import ConfigurationError
from tidework.migration.crontab import CrontabOptions, take_over
from tidework.migration.takeover import Takeover, label_of, render_module, write_files


def crontab(*commands: str, head: str = "") -> Takeover:
    lines = "\n".join(f"* * * * * {command}" for command in commands)
    return take_over(f"{head}\n{lines}\n", 'crontab """ \\ of\nbob', CrontabOptions())


def loaded(found: Takeover, folder: Path) -> ModuleType:
    write_files(found, folder)
    spec = importlib.util.spec_from_file_location("taken_over", folder / f"{found.module}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(found: Takeover, folder: Path) -> int:
    """Run its only command with a worker's document on its input; the exit code."""
    app = loaded(found, folder).app
    assert isinstance(app, Tidework)
    (task,) = app.tasks.values()
    assert task.command is not None
    ended = subprocess.run(
        task.command.argv,
        env={**os.environ, **task.command.env},
        cwd=task.command.cwd or None,
        input=b'{"params": {}}',
        check=False,
    )
    return ended.returncode


def test_a_command_runs_with_its_settings_and_its_input(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    head = f"FOLDER={tmp_path}\nGREETING='to \"you\" \\ {{0}} 🕒'"
    found = crontab('{ echo "$GREETING"; cat; } > $FOLDER/out.txt%one%two', head=head)
    assert run(found, tmp_path / "files") == 0
    assert out.read_text() == 'to "you" \\ {0} 🕒\none\ntwo\n'


def test_without_input_a_command_reads_nothing_and_starts_at_home(tmp_path: Path) -> None:
    assert run(crontab("cat > out.txt", head=f"HOME={tmp_path}"), tmp_path / "files") == 0
    assert (tmp_path / "out.txt").read_text() == ""


@pytest.mark.parametrize("code", [0, 1, 65, 75])
def test_the_exit_code_is_the_command_s(code: int, tmp_path: Path) -> None:
    assert run(crontab(f"exit {code}"), tmp_path) == code
    assert run(crontab(f"cat; exit {code}%input"), tmp_path / "more") == code


def test_a_task_of_each_command_has_its_attempts(tmp_path: Path) -> None:
    app = loaded(crontab("/bin/a", "/bin/b", "/bin/a"), tmp_path).app
    assert set(app.tasks) == {"a", "b", "a-2"}
    assert {task.spec.retry.max_attempts for task in app.tasks.values()} == {1}
    assert {task.spec.queue for task in app.tasks.values()} == {"crontab"}


def test_files_that_are_there_are_not_overwritten_unasked(tmp_path: Path) -> None:
    write_files(crontab("/bin/a"), tmp_path)
    before = (tmp_path / "tidework.yaml").read_text()
    with pytest.raises(ConfigurationError, match="--overwrite"):
        write_files(crontab("/bin/b"), tmp_path)
    assert (tmp_path / "tidework.yaml").read_text() == before
    write_files(crontab("/bin/b"), tmp_path, overwrite=True)
    assert (tmp_path / "tidework.yaml").read_text() != before


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write into"):
        write_files(crontab("/bin/a"), tmp_path / "file" / "below")


def test_the_source_cannot_break_out_of_the_docstring() -> None:
    compile(render_module(crontab("/bin/a")), "module", "exec")


def test_labels() -> None:
    taken: set[str] = set()
    found = [label_of(text, taken) for text in ("A b", "a_b", "7z", "", "--", "x" * 99, "x" * 60)]
    assert found == ["a-b", "a-b-2", "task-7z", "task", "task-2", "x" * 52, "x" * 52 + "-2"]
