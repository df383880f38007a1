"""Documents and short programs of the pages are what Tidework and the languages take.

Pages with a story of their own are elsewhere: tasks, queues, schedules beside this file, the first
steps among the integration tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import yaml
from click.testing import CliRunner

from tests.support.docs import run_block
from tidework import Tidework
from tidework.cli.commands import root
from tidework.client import Client
from tidework.model.job import JobState
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker

ROOT = Path(__file__).parents[2]
JOB = {"id": "j", "task": "t", "params": {"to": "ada@example.org", "text": "one two"}, "attempt": 1}


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def whole(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the lines that a page leaves out where it shows a part."""
    rest = {"kind": "TaskQueue", "metadata": {"name": "part"}}
    return {"apiVersion": "tidework.dev/v1alpha1"} | rest | document


def queue_of(name: str) -> dict[str, Any]:
    return whole({"metadata": {"name": name}, "spec": {"app": "shop"}})


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("README.md", 2),
        ("docs/getting-started.md", 2),
        ("docs/workers.md", 2),
        ("docs/exec-tasks.md", 3),
    ],
)
def test_documents_are_valid(page: str, number: int, tmp_path: Path) -> None:
    found = [each for block in blocks(page, "yaml") for each in yaml.safe_load_all(block)]
    assert len(found) == number
    documents = [whole(each) for each in found if "commands" not in each]
    named = {each["metadata"]["name"] for each in documents if each["kind"] == "TaskQueue"}
    wanted = {each["spec"]["queue"] for each in documents if each["kind"] == "CronTask"}
    documents += map(queue_of, wanted - named)
    (tmp_path / "documents.yaml").write_text(yaml.safe_dump_all(documents))
    for count, commands in enumerate(each for each in found if "commands" in each):
        (tmp_path / f"commands-{count}.yaml").write_text(yaml.safe_dump(commands))

    ended = CliRunner().invoke(root, ["lint", "--no-apps", *map(str, tmp_path.iterdir())])

    assert ended.exit_code == 0, ended.output


async def test_the_task_for_an_event_loop_posts_its_event() -> None:
    posted = list[object]()

    class AsyncClient:
        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None: ...

        async def post(self, url: str, json: object) -> SimpleNamespace:
            posted.append((url, json))
            return SimpleNamespace(status_code=204)

    (block,) = blocks("docs/workers.md", "python")
    page: dict[str, Any] = {
        "app": Tidework("shop.hooks"),
        "httpx": SimpleNamespace(AsyncClient=AsyncClient),
    }
    await run_block(block, page)

    assert page["deliver"].spec.queue == "webhooks"
    assert await page["deliver"]("http://hook", {"a": 1}) == 204
    assert posted == [("http://hook", {"a": 1})]


async def test_a_command_of_an_application_is_enqueued() -> None:
    (block,) = blocks("docs/exec-tasks.md", "python")
    app = Tidework("shop", queue="reports")
    app.client = Client(Settings(namespace="ns"), broker=MemoryBroker())

    await run_block(block, {"app": app})

    page = await app.client.jobs("reports", JobState.SCHEDULED)
    assert len(page.ids) == 1


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment in which mail goes nowhere, and is said to be sent."""
    for name in ("mail", "sendmail"):
        (tmp_path / name).write_text("#!/bin/sh\ncat >/dev/null\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "report.txt").write_text("all is well\n")
    return os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


def run(command: list[str], folder: Path, job: object, environment: dict[str, str]) -> Any:
    """Run a program of a page with a job on standard input; returns exit code and result."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]} on the PATH")
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in {0, 65}, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.returncode


def test_the_shell_program(tmp_path: Path, programs: dict[str, str]) -> None:
    if shutil.which("jq") is None:
        pytest.skip("needs jq on the PATH")
    (program,) = [text for text in blocks("docs/exec-tasks.md", "sh") if text.startswith("#!")]
    (tmp_path / "report.sh").write_text(program)
    command = ["sh", "report.sh"]

    assert run(command, tmp_path, JOB, programs) == {"sent": True}
    assert run(command, tmp_path, JOB | {"params": {}}, programs) == 65


def test_the_php_program(tmp_path: Path, programs: dict[str, str]) -> None:
    (program,) = blocks("docs/exec-tasks.md", "php")
    (tmp_path / "report.php").write_text(program)
    command = ["php", "-d", f"sendmail_path={tmp_path}/sendmail", "report.php"]

    assert run(command, tmp_path, JOB, programs) == {"sent": "ada@example.org"}
    assert run(command, tmp_path, JOB | {"params": {"to": "nowhere"}}, programs) == 65


def test_the_node_program(tmp_path: Path, programs: dict[str, str]) -> None:
    (program,) = blocks("docs/exec-tasks.md", "js")
    (tmp_path / "words.mjs").write_text(program)

    assert run(["node", "words.mjs"], tmp_path, JOB, programs) == {"words": 2}
