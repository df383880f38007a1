"""The size budget: a file is one idea, a function fits a screen.

About 250 lines a file and 40 a function are wanted; above 400 and 70 the check fails. Exceptions
are named below with their reason; one without need fails too, so that the list only shrinks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import Finding, Source, run, sources

FILE_LINES = 400
FUNCTION_LINES = 70

# "path" or "path::qualified.function" -> why it may be larger
EXCEPTIONS: dict[str, str] = {}

LUA_FUNCTION = re.compile(r"^(?:local )?function ([\w.:]+).*?^end$", re.MULTILINE | re.DOTALL)


def check(root: Path, exceptions: dict[str, str] = EXCEPTIONS) -> list[Finding]:
    """Every file and function above the budget, and every exception without need."""
    findings, used = [], set()
    for source in sources(root, ".py", ".lua"):
        for name, line, size, bound in measure(source):
            if size <= bound:
                continue
            if name in exceptions:
                used.add(name)
            else:
                findings.append(
                    Finding(source.path, line, f"{name} has {size} lines, the bound is {bound}")
                )
    for name in sorted(set(exceptions) - used):
        path = name.partition("::")[0]
        findings.append(Finding(path, 1, f"exception {name} in sizes.py is not needed: remove it"))
    return findings


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
