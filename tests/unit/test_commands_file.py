"""Commands files: what they may say, each fault with its place, and the application they make."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.documents import QUEUE
from tests.unit.test_manifests_form import properties
from tidework.app_loading import load_app
from tidework.cli.commands import root
from tidework.errors import AppImportError, ConfigurationError
from tidework.manifests import ManifestErrors, read_manifests
from tidework.manifests.commands_file import CommandsFile, commands_files, read_commands
from tidework.model.command import Command

FULL = """
commands:
  send-report:
    command: ["php", "report.php"]
    workingDir: scripts
    env: {REPORT_LOCALE: de}
    timeoutSeconds: 60
    softTimeoutSeconds: 50
    maxAttempts: 2
    delaysSeconds: [1, 2.5]
    queue: reports
    priority: 3
    maxOutputBytes: 1000
  short:
    command: [./run]
"""
VARIABLE_RULE = "use letters, digits and '_', not starting with a digit"
LABEL_RULE = (
    "use at most 63 characters of a-z, 0-9 and '-', starting and ending with a letter or digit"
)


def write(folder: Path, text: str, name: str = "commands.yaml") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def faults_in(folder: Path, text: str, name: str = "commands.yaml") -> list[str]:
    with pytest.raises(ManifestErrors) as refused:
        read_commands(write(folder, text, name))
    return [str(error).removeprefix(f"{folder}/") for error in refused.value.errors]


def test_each_command_is_a_task(tmp_path: Path) -> None:
    app = load_app(str(write(tmp_path, FULL)))

    full, short = app.tasks["send-report"], app.tasks["short"]
    assert app.name == "commands"
    assert full.command == Command(
        ("php", "report.php"), str(tmp_path / "scripts"), {"REPORT_LOCALE": "de"}, 1000
    )
    assert full.spec.timeout == timedelta(seconds=60)
    assert full.spec.soft_timeout == timedelta(seconds=50)
    assert full.spec.retry.max_attempts == 2
    assert full.spec.retry.delays == (timedelta(seconds=1), timedelta(seconds=2.5))
    assert (full.spec.queue, full.spec.priority) == ("reports", 3)
    assert short.command == Command(("./run",), str(tmp_path))
    assert short.spec.timeout is None


def test_folders_count_from_the_file_wherever_the_worker_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FULL.replace("scripts", "/srv"))
    monkeypatch.chdir(tmp_path.parent)

    app = load_app(f"{tmp_path.name}/commands.yaml")

    commands = [task.command for task in app.tasks.values()]
    assert [command.cwd for command in commands if command] == ["/srv", str(tmp_path)]


def test_json_is_read_by_its_own_rules(tmp_path: Path) -> None:
    path = write(tmp_path, '\t{"commands": {"a": {"command": ["x"]}}}', "a.json")

    assert load_app(str(path)).tasks.keys() == {"a"}
    (twice,) = faults_in(tmp_path, '{"commands": {}, "commands": {}}', "b.json")
    assert twice.startswith("b.json: not valid JSON: the key 'commands' comes twice")
    (unknown,) = faults_in(
        tmp_path, '{"commands": {"a": {"command": ["x"], "queu": ""}}}', "c.json"
    )
    assert unknown == "c.json: commands.a.queu: unknown field; did you mean queue?"


def test_every_fault_has_its_line_its_field_and_a_way_to_mend_it(tmp_path: Path) -> None:
    found = faults_in(
        tmp_path,
        """
        commands:
          9x:
            command: []
            workdir: 5
          ok: {command: php x, env: {A: 5, b-c: y}, timeoutSeconds: -1, queue: A}
          env: {comand: [x], maxAttempts: 0}
        """,
    )

    assert found == [
        "commands.yaml:4: commands.9x.command: needs 1 or more entries",
        "commands.yaml:5: commands.9x.workdir: unknown field; did you mean workingDir?",
        'commands.yaml:6: commands.ok.command: has to be a list, not "php x"',
        "commands.yaml:6: commands.ok.env.A: has to be text, not 5; put it in quotes if it is text",
        f"commands.yaml:6: commands.ok.env.b-c: 'b-c' is refused: {VARIABLE_RULE}",
        f"commands.yaml:6: commands.ok.queue: 'A' is refused: {LABEL_RULE}",
        "commands.yaml:6: commands.ok.timeoutSeconds: has to be above 0.0, not -1",
        "commands.yaml:7: commands.env.command: is required",
        "commands.yaml:7: commands.env.maxAttempts: has to be 1 or more, not 0",
        "commands.yaml:7: commands.env.comand: unknown field; did you mean command?",
    ]


def test_what_only_the_whole_shows_is_told_too(tmp_path: Path) -> None:
    found = faults_in(
        tmp_path,
        r"""
        commands:
          a: {command: ["", "b\0"], env: {TIDEWORK_TASK: x}, delaysSeconds: [-1]}
          b: {command: [x], timeoutSeconds: 5, softTimeoutSeconds: 5}
        """,
    )

    assert found == [
        "commands.yaml:3: commands.a.command: its first entry is the program and cannot be empty",
        "commands.yaml:3: commands.a.command: no argument and no folder may hold a NUL; remove it",
        "commands.yaml:3: commands.a.env.TIDEWORK_TASK: is set by the worker; choose another name",
        "commands.yaml:3: commands.a.delaysSeconds: a wait is negative; use 0 or more",
        "commands.yaml:4: commands.b.softTimeoutSeconds: has to be below timeoutSeconds",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "a commands file has to be a mapping with commands at its top"),
        ("- a", "a commands file has to be a mapping with commands at its top"),
        ("commands:", "commands: has to be a mapping, not null"),
        ("commands: {}", "commands: needs 1 or more entries"),
        ("commands: {a b: {command: [x]}}", "commands.a b: is not the name of a task"),
        ("commands: {a: {command: [x]}}\n---\nb: c", "a commands file is one document"),
        ("commands: {a: {command: [x]}, a: {command: [y]}}", "commands.a: given twice"),
        ("commands: {a: {command: [x]}", "not valid YAML"),
        ("commands: {a: {command: [x], env: {A: !!binary eA==}}}", "is not JSON data"),
        ("commands: {a: {command: [x]}, 5: {command: [y]}}", "key 5 is not text"),
    ],
)
def test_what_is_no_commands_file_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    (found,) = faults_in(tmp_path, text)

    assert fault in found


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"# \xe4\ncommands: {}")

    with pytest.raises(ConfigurationError, match=r"none\.yaml: cannot be read: No such file"):
        load_app(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigurationError, match=r"latin\.yaml:1: not UTF-8 text"):
        load_app(str(tmp_path / "latin.yaml"))
    with pytest.raises(AppImportError):
        load_app("commands")


def test_every_field_is_described_and_bounded() -> None:
    found = dict(properties(CommandsFile.model_json_schema(by_alias=True), "file"))

    assert len(found) == 11
    assert [path for path, field in found.items() if not field.get("description")] == []


def test_in_a_folder_of_documents_it_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, QUEUE, "queue.yaml")
    commands = write(tmp_path, FULL)

    manifests = read_manifests([tmp_path])

    assert len(manifests.queues) == 1
    assert commands_files([tmp_path]) == (commands,)
    with pytest.raises(ManifestErrors, match="this is a commands file: name it as the app"):
        read_manifests([commands])


def test_a_queue_may_have_one_as_its_app(tmp_path: Path) -> None:
    write(tmp_path, QUEUE.replace("app: shop.tasks", "app: jobs/commands.yaml"), "queue.yaml")

    manifests = read_manifests([tmp_path])

    assert manifests.queues[0].spec.app == "jobs/commands.yaml"
    assert manifests.commands_files == (tmp_path / "jobs/commands.yaml",)


def test_lint_checks_it_beside_documents(tmp_path: Path) -> None:
    write(tmp_path, QUEUE, "queue.yaml")
    path = write(tmp_path, FULL)
    whole = CliRunner().invoke(root, ["lint", str(tmp_path)])
    alone = CliRunner().invoke(root, ["lint", str(path)])
    write(tmp_path, FULL.replace("command:", "comand:"))
    wrong = CliRunner().invoke(root, ["lint", str(tmp_path)])

    assert "1 TaskQueue(s), 0 CronTask(s), 1 commands file(s): ok" in whole.output
    assert "0 TaskQueue(s), 0 CronTask(s), 1 commands file(s): ok" in alone.output
    assert (whole.exit_code, alone.exit_code, wrong.exit_code) == (0, 0, 1)
    assert "did you mean command?" in wrong.output


def test_a_worker_reads_it_without_what_only_schedulers_have(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    code = (
        "import sys; "
        "sys.modules.update(dict.fromkeys(['croniter', 'cron_descriptor', 'watchfiles'])); "
        "from tidework.app_loading import load_app; "
        f"print(*load_app({str(path)!r}).tasks)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False
    )

    assert done.stdout == "send-report short\n", done.stderr
