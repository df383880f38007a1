"""The size budget: a file is one idea, a function fits a screen, a folder of the product is a room.

About 250 lines a file and 40 a function are wanted; above 400 and 70 the check fails, and above
20 modules in a folder. Exceptions are named below with their reason; one without need fails too,
so that the list only shrinks.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.architecture.source import Finding, Source, run, sources

FILE_LINES = 400
FUNCTION_LINES = 70
ROOM_MODULES = 20
PRODUCT = ("worker/src/", "operator/src/")

_SCRIPTS = "worker/src/tidework/broker/scripts"
# "path", "path::qualified.function" or "folder/" -> why it may be larger
EXCEPTIONS: dict[str, str] = {
    "worker/src/tidework/errors.py": "one tree in one file, where a reader looks an error up",
    f"{_SCRIPTS}/": "a file per change of state, which is how they are looked for",
    f"{_SCRIPTS}/fragments/": "what scripts share, named in their headers",
}

LUA_FUNCTION = re.compile(r"^(?:local )?function ([\w.:]+).*?^end$", re.MULTILINE | re.DOTALL)


def check(root: Path, exceptions: dict[str, str] = EXCEPTIONS) -> list[Finding]:
    """Every file, function and room above the budget, and every exception without need."""
    findings, used = [], set()
    found = list(sources(root, ".py", ".lua"))
    for source in found:
        for name, line, size, bound in measure(source):
            if size <= bound:
                continue
            if name in exceptions:
                used.add(name)
            else:
                findings.append(
                    Finding(source.path, line, f"{name} has {size} lines, the bound is {bound}")
                )
    for folder, count in rooms(found):
        if count > ROOM_MODULES and folder in exceptions:
            used.add(folder)
        elif count > ROOM_MODULES:
            text = f"{folder} holds {count} modules, the bound is {ROOM_MODULES}"
            findings.append(Finding(folder, 1, text))
    for name in sorted(set(exceptions) - used):
        path = name.partition("::")[0]
        findings.append(Finding(path, 1, f"exception {name} in sizes.py is not needed: remove it"))
    return findings


def rooms(found: list[Source]) -> Iterator[tuple[str, int]]:
    """Each folder of the product, with how many modules and scripts it holds itself."""
    paths = [PurePosixPath(source.path) for source in found if source.path.startswith(PRODUCT)]
    counts = Counter(f"{path.parent}/" for path in paths if path.name != "__init__.py")
    yield from sorted(counts.items())


def measure(source: Source) -> Iterator[tuple[str, int, int, int]]:
    """Name, first line, size and bound of the file and of each function in it."""
    yield source.path, 1, len(source.text.splitlines()), FILE_LINES
    functions = lua_functions if source.path.endswith(".lua") else python_functions
    for name, line, size in functions(source.text):
        yield f"{source.path}::{name}", line, size, FUNCTION_LINES


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Qualified name, first line and size of each function, methods and nested ones included."""

    def below(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    size = (child.end_lineno or child.lineno) - child.lineno + 1
                    yield name[:-1], child.lineno, size
            yield from below(child, name)

    return below(ast.parse(text), "")


def lua_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """The same for functions that begin and end at the left margin."""
    for found in LUA_FUNCTION.finditer(text):
        yield found[1], text.count("\n", 0, found.start()) + 1, found[0].count("\n") + 1


if __name__ == "__main__":
    run(check, "Split by idea; an exception with its reason goes into tests/architecture/sizes.py.")
