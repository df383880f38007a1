"""The word list: a name says the one word that the product has for an idea (see vocabulary.py).

Looked at are the names that a file introduces, not those it uses: modules, classes, functions,
parameters, variables and attributes of Python; functions and locals of Lua; options of the CLI.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.architecture.source import Finding, Source, run, sources
from tests.architecture.vocabulary import ALLOWED, PHRASES, WORDS

PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*")
LUA_LOCAL = re.compile(r"\b(?:local|for)\s+(?!function\b)([\w\s,]+?)\s*(?:=|\bin\b|$)")
LUA_FUNCTION = re.compile(r"\bfunction\s*([\w.:]*)\s*\(([^)]*)\)")
LUA_COMMENT = re.compile(r"--.*")
OPTION = re.compile(r"--[a-z][a-z-]*")

Name = tuple[str, int]


def check(root: Path) -> list[Finding]:
    """Every name that says one of the listed words, with the word to use."""
    findings = []
    for source in sources(root, ".py", ".lua"):
        names = lua_names if source.path.endswith(".lua") else python_names
        for name, line in [(PurePosixPath(source.path).stem, 1), *names(source)]:
            findings += [
                Finding(source.path, line, f"name {name!r}: say {right!r}, not {wrong!r}")
                for wrong, right in offences(name)
            ]
    return findings


def offences(name: str) -> Iterator[tuple[str, str]]:
    """The wrong words in a name, each with the right one."""
    if name in ALLOWED:
        return
    parts = [part.lower() for part in PART.findall(name)]
    yield from ((part, WORDS[part]) for part in dict.fromkeys(parts) if part in WORDS)
    for phrase, right in PHRASES.items():
        if any(tuple(parts[at : at + len(phrase)]) == phrase for at in range(len(parts))):
            yield " ".join(phrase), right


def python_names(source: Source) -> Iterator[Name]:
    """Names that a Python file introduces, with their lines, and options given to click."""
    for node in ast.walk(ast.parse(source.text)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.alias(asname=str() as name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                yield name, node.lineno
            case ast.Call(func=ast.Attribute(attr="option")):
                yield from options(node)


def options(call: ast.Call) -> Iterator[Name]:
    """`--like-this` among the arguments of an option declaration."""
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            for option in OPTION.findall(argument.value):
                yield option, argument.lineno


def lua_names(source: Source) -> Iterator[Name]:
    """Locals, functions and parameters of a Lua file, with their lines."""
    for line, text in enumerate(source.text.splitlines(), 1):
        code = LUA_COMMENT.sub("", text)
        for found in LUA_LOCAL.finditer(code):
            yield from ((name, line) for name in re.findall(r"\w+", found[1]))
        for found in LUA_FUNCTION.finditer(code):
            yield from ((name, line) for name in re.findall(r"\w+", f"{found[1]} {found[2]}"))


if __name__ == "__main__":
    run(check, "An exception with its reason goes into tests/architecture/vocabulary.py.")
