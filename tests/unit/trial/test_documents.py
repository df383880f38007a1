"""Documents are checked against the applications that they name, each in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tidework.manifests import read_manifests
from tidework.model.identity import QueueName
from tidework.trial.documents import Checked, check_documents

APP = """
import sys
from tidework import Tidework

app = Tidework("shop", queue="emails")

@app.task
def send(to: str, copies: int = 1) -> None:
    from . import letters

@app.task
def anything(**params: object) -> None:
    import later.inner

print("the application says hello")
"""

QUEUE = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {{name: emails}}
spec: {{app: {app}, env: [{{name: MODE, value: fast}}]}}
---
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata: {{name: often}}
spec:
  queue: emails
  every: 1m
  task: {task}
  params: {params}
"""


HOOKS = """
from tidework import Tidework

app = Tidework("shop")

@app.task(queue="webhooks")
async def deliver() -> None: ...

@app.task(queue="images")
def resize() -> None: ...
"""

HOOK_QUEUES = """
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: webhooks}
spec: {app: shop.hooks, asyncSlots: 10}
---
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: images}
spec: {app: shop.hooks, asyncSlots: 10}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "shop/__init__.py": "",
        "shop/tasks.py": APP,
        "shop/letters.py": "from .paper import sheet",
        "shop/paper.py": "sheet = 1",
        "shop/scratch.py": "1 / 0",
        "later/__init__.py": "",
        "later/inner.py": "",
        "tests/test_shop.py": "import shop.tasks",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def check(
    folder: Path,
    app: str = "shop.tasks",
    task: str = "send",
    params: str = "{to: ada}",
    common: Mapping[str, str] | None = None,
) -> Checked:
    file = folder / "shop.yaml"
    file.write_text(QUEUE.format(app=app, task=task, params=params))
    return asyncio.run(check_documents(read_manifests([file]), common))


def test_what_fits_is_without_fault_and_the_sources_are_found(folder: Path) -> None:
    checked = check(folder)
    assert not [*checked.faults, *checked.broken, *checked.unchecked]
    sources = checked.sources[QueueName("default", "emails")]
    assert sources is not None
    found = {str(Path(path).relative_to(folder.resolve())) for path in sources}
    assert found == {
        "shop/__init__.py",
        "shop/tasks.py",
        "shop/letters.py",
        "shop/paper.py",
        "later/__init__.py",
        "later/inner.py",
    }


@pytest.mark.parametrize(
    ("task", "params", "told"),
    [
        ("sned", "{}", "shop.yaml:13: spec.task: the application has no task 'sned'; did you mean"),
        ("xyz", "{}", "has no task 'xyz'; it has: anything, send"),
        ("send", "{}", "shop.yaml:14: spec.params: task 'send' does not take them: to: Field"),
        ("send", "{to: a, copys: 2}", "copys: Extra inputs are not permitted"),
        ("send", "{to: a, copies: many}", "copies: Input should be a valid integer"),
    ],
)
def test_a_task_or_a_param_that_is_not_there_is_told_with_its_place(
    folder: Path, task: str, params: str, told: str
) -> None:
    (fault,) = check(folder, task=task, params=params).faults
    assert told in str(fault)


def test_a_task_that_would_block_the_event_loop_of_its_queue_is_a_fault(folder: Path) -> None:
    (folder / "shop" / "hooks.py").write_text(HOOKS)
    (folder / "shop.yaml").write_text(HOOK_QUEUES)

    checked = asyncio.run(check_documents(read_manifests([folder / "shop.yaml"])))

    (fault,) = checked.broken
    assert "shop.yaml:10: spec.asyncSlots: the workers of this queue have async" in str(fault)
    assert "(resize); make it an 'async def'" in str(fault)


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("shop.taks", "shop.yaml:5: spec.app: app 'shop.taks' was not found; did you mean 'shop.t"),
        ("shpo.tasks", "did you mean 'shop.tasks'?"),
        ("shop.tasks:ap", "shop.tasks:ap is missing; did you mean 'app'?"),
        ("shop.letters", "holds no Tidework app"),
        ("shop.scrap", "does not import: SyntaxError"),
        ("shop.ended", "ended its process while it was imported; its last output: goodbye"),
    ],
)
def test_an_app_that_loads_nowhere_is_a_fault(folder: Path, app: str, told: str) -> None:
    (folder / "shop" / "scrap.py").write_text("def (")
    (folder / "shop" / "ended.py").write_text(
        "import os, sys\nprint('goodbye', flush=True)\nos._exit(3)"
    )
    checked = check(folder, app)
    (fault,) = checked.broken
    assert told in str(fault)
    assert checked.sources == {QueueName("default", "emails"): None}
    assert not checked.unchecked


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("warehouse", "app 'warehouse' was not found"),
        ("shop.needs", "does not import: ModuleNotFoundError: No module named 'nothing_of_that"),
        ("shop.wants", "does not import: KeyError: 'SECRET'"),
    ],
)
def test_an_app_that_may_load_elsewhere_is_not_checked(folder: Path, app: str, told: str) -> None:
    (folder / "shop" / "needs.py").write_text("import nothing_of_that_name")
    (folder / "shop" / "wants.py").write_text("import os\nos.environ['SECRET']")
    checked = check(folder, app)
    (reason,) = checked.unchecked
    assert told in str(reason)
    assert not [*checked.broken, *checked.faults]


def test_it_is_loaded_with_the_environment_of_its_workers(folder: Path) -> None:
    (folder / "shop" / "wants.py").write_text(
        APP + "import os\nassert os.environ['MODE'] == 'fast'\nassert os.environ['COMMON'] == 'x'\n"
        "assert os.environ['TIDEWORK_APP'] == 'shop.wants'\n"
    )
    checked = check(folder, "shop.wants", common={"COMMON": "x"})
    assert not [*checked.faults, *checked.broken, *checked.unchecked]


def test_a_commands_file_is_an_app_as_well(folder: Path) -> None:
    (folder / "commands.yaml").write_text("commands: {send: {command: [echo]}}")
    assert not check(folder, "commands.yaml").faults
    (fault,) = check(folder, "commands.yaml", "sned").faults
    assert "did you mean 'send'?" in str(fault)
