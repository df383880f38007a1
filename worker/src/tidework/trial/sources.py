"""Which files an application is made of: what it has imported, and what its functions import later.

Found without importing anything more: the text of each file is looked through for imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOREIGN = "site-packages"


def sources_below(root: Path) -> frozenset[str]:
    """Files below ``root``, resolved, of the modules that this process has imported, and of those
    that they import when their functions are called."""
    root = root.resolve()
    open_ends = [
        (module.__name__, path)
        for module in list(sys.modules.values())
        if (path := _file_of(module)) is not None and _is_below(path, root)
    ]
    found = {path for _, path in open_ends}
    while open_ends:
        name, path = open_ends.pop()
        for imported in _imports_of(name, path):
            for each in _files_of(imported, root):
                if each not in found:
                    found.add(each)
                    open_ends.append((imported, each))
    return frozenset(str(path) for path in found)


def _file_of(module: object) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) and file.endswith(".py") else None


def _is_below(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and FOREIGN not in path.parts


def _imports_of(name: str, path: Path) -> Iterator[str]:
    """Names of modules, and of what is taken from them: that may be modules as well."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            start = ".".join(
                [*(above if node.level else []), *([node.module] if node.module else [])]
            )
            yield start
            yield from (f"{start}.{alias.name}" for alias in node.names)


def _files_of(module: str, root: Path) -> Iterator[Path]:
    """The files of a module and the packages around it, as far as they lie below ``root``."""
    parts = module.split(".")
    for entry in dict.fromkeys(sys.path):
        start = Path(entry or ".").resolve()
        if not (_is_below(start, root) or root.is_relative_to(start)):
            continue
        for count in range(1, len(parts) + 1):
            place = start.joinpath(*parts[:count])
            for path in (place / "__init__.py", place.with_suffix(".py")):
                if _is_below(path, root) and path.is_file():
                    yield path.resolve()
