"""The size budget holds, and a planted offender is reported with its place."""

from __future__ import annotations

from pathlib import Path

from tests.architecture import sizes
from tests.architecture.planted import make, make_copy
from tests.architecture.source import Finding

LONG_FUNCTION = "def long() -> None:\n" + "    print()\n" * sizes.FUNCTION_LINES
LONG_LUA_FUNCTION = "local function long()\n" + "  return 1\n" * sizes.FUNCTION_LINES + "end\n"


def plant(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def test_make_check_fails_on_a_long_file_and_a_long_function(tmp_path: Path) -> None:
    root = make_copy(tmp_path)
    plant(root, "worker/src/tidework/model/lease.py", "x = 1\n" * (sizes.FILE_LINES + 1))
    plant(root, "tests/architecture/long.py", "\n\n" + LONG_FUNCTION)

    gate = make(root, "sizes")

    assert gate.returncode != 0
    assert "worker/src/tidework/model/lease.py:1: " in gate.stdout
    assert "tests/architecture/long.py:3: tests/architecture/long.py::long has 71" in gate.stdout


def test_methods_nested_functions_and_lua_count_and_the_bound_itself_is_allowed(
    tmp_path: Path,
) -> None:
    body = "        print()\n" * sizes.FUNCTION_LINES
    plant(tmp_path, "worker/a.py", f"class Slot:\n    async def run(self):\n{body}")
    plant(tmp_path, "worker/b.lua", "local x = 1\n" + LONG_LUA_FUNCTION)
    plant(tmp_path, "worker/c.py", LONG_FUNCTION.removesuffix("    print()\n"))
    plant(tmp_path, "worker/d.py", "x = 1\n" * sizes.FILE_LINES)

    findings = sizes.check(tmp_path, exceptions={})

    assert [(f.path, f.line, f.text) for f in findings] == [
        ("worker/a.py", 2, "worker/a.py::Slot.run has 71 lines, the bound is 70"),
        ("worker/b.lua", 2, "worker/b.lua::long has 72 lines, the bound is 70"),
    ]


def test_a_folder_of_the_product_holds_20_modules_and_what_is_no_module_does_not_count(
    tmp_path: Path,
) -> None:
    for folder in ("worker/src/tidework/full", "worker/src/tidework/over", "tests/over"):
        plant(tmp_path, f"{folder}/__init__.py", "")
        count = sizes.ROOM_MODULES + folder.endswith("over")
        for number in range(count):
            plant(tmp_path, f"{folder}/m{number}.py", "")

    findings = sizes.check(tmp_path, exceptions={})

    folder = "worker/src/tidework/over/"
    assert findings == [Finding(folder, 1, f"{folder} holds 21 modules, the bound is 20")]


def test_an_exception_excuses_and_one_without_need_is_an_offence(tmp_path: Path) -> None:
    plant(tmp_path, "worker/a.py", LONG_FUNCTION)
    needed, needless = {"worker/a.py::long": "a table"}, {"worker/b.py": "gone"}

    findings = sizes.check(tmp_path, exceptions=needed | needless)

    assert findings == [
        Finding("worker/b.py", 1, "exception worker/b.py in sizes.py is not needed: remove it")
    ]


def test_every_exception_has_a_reason() -> None:
    assert all(reason.strip() for reason in sizes.EXCEPTIONS.values())
