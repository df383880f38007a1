"""The numbers of one source file: pure, bytes in, a Measurement out."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documentable = Function | ast.ClassDef | ast.Module
_HOLDS_STATEMENTS = ast.stmt | ast.excepthandler | ast.match_case


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one file holds.

    functions, classes: all of them, methods and nested ones included
    documentable:       the module unless it is empty, and its public classes, functions, methods
    documented:         those of them with a docstring
    """

    lines: int
    functions: int
    classes: int
    documentable: int
    documented: int


class UnparsableError(Exception):
    """A file that Python cannot parse; the text is ``FILE:LINE: reason``."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{name}:{line}: {reason}")


def measure_source(name: str, source: bytes) -> Measurement:
    """Parse the source and count. Raises UnparsableError naming file and line."""
    tree = _parse(name, source)
    nodes = list(ast.walk(tree))
    documentable = list(_documentable(tree))
    return Measurement(
        lines=len(source.splitlines()),
        functions=sum(isinstance(node, Function) for node in nodes),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        documentable=len(documentable),
        documented=sum(ast.get_docstring(node, clean=False) is not None for node in documentable),
    )


def _parse(name: str, source: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # Old escapes and the like: the library's to mend, no concern of ours.
            warnings.simplefilter("ignore")
            return ast.parse(source, filename=name)
    except SyntaxError as error:
        reason = error.msg if type(error) is SyntaxError else f"{type(error).__name__}: {error.msg}"
        raise UnparsableError(name, error.lineno or _faulty_line(source), reason) from error
    except (ValueError, RecursionError, MemoryError) as error:
        # Python before 3.12 on null bytes; the parser's stack on what is nested too deeply.
        reason = str(error) or f"too complex to parse ({type(error).__name__})"
        raise UnparsableError(name, _faulty_line(source), reason) from error


def _faulty_line(source: bytes) -> int:
    """Where the bytes are at fault; Python does not tell the line of every fault of this kind."""
    at = source.find(b"\0")
    if at < 0:
        try:
            source.decode()
        except UnicodeDecodeError as error:
            at = error.start
    return source.count(b"\n", 0, max(at, 0)) + 1


def _documentable(tree: ast.Module) -> Iterator[Documentable]:
    """What a reader from outside meets: no private name, nothing inside a function."""
    if tree.body:
        yield tree
    inside: list[ast.AST] = [tree]
    while inside:
        for node in ast.iter_child_nodes(inside.pop()):
            if isinstance(node, Function | ast.ClassDef):
                if node.name.startswith("_"):
                    continue
                yield node
                if isinstance(node, Function):
                    continue
            if isinstance(node, _HOLDS_STATEMENTS):
                inside.append(node)
