"""Tests wait for conditions: what sleeps a fixed time says why beside it.

Looked at are test functions, fixtures and what they call. Functions within a function are the
jobs and fakes of a test, and `apps` are programs of workers: these may sleep as they like.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from tests.architecture.source import ROOT, Finding, sources

FREE = ("tests/support/waiting.py",)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def fixed_waits(path: str, text: str) -> list[Finding]:
    """Sleeps of more than nothing without a comment on their line."""
    if "sleep(" not in text:
        return []
    lines = io.StringIO(text).readline
    explained = {t.start[0] for t in tokenize.generate_tokens(lines) if t.type == tokenize.COMMENT}
    return [
        Finding(path, found.lineno, "a fixed wait without a reason")
        for found in _sleeps(ast.parse(text), inside=False)
        if not explained & set(range(found.lineno, (found.end_lineno or found.lineno) + 1))
    ]


def _sleeps(node: ast.AST, *, inside: bool) -> Iterator[ast.Call]:
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, Function | ast.Lambda)
        if is_function and inside:
            continue
        if isinstance(child, ast.Call) and _is_sleep(child):
            yield child
        yield from _sleeps(child, inside=inside or is_function)


def _is_sleep(call: ast.Call) -> bool:
    match call:
        case ast.Call(ast.Attribute(ast.Name("time" | "asyncio"), "sleep"), [ast.Constant(0)]):
            return False
        case ast.Call(ast.Attribute(ast.Name("time" | "asyncio"), "sleep")):
            return True
    return False


def test_no_test_sleeps_a_fixed_time_without_a_reason() -> None:
    read = [s for s in sources(ROOT, ".py") if s.path.startswith("tests/")]
    looked_at = [s for s in read if s.path not in FREE and "/apps/" not in s.path]

    assert len(looked_at) > 300
    assert [found for s in looked_at for found in fixed_waits(s.path, s.text)] == []


def test_what_it_finds_and_what_it_lets_be() -> None:
    text = """
async def test_it():
    await asyncio.sleep(0)
    await asyncio.sleep(1)  # the server's clock goes on
    await asyncio.sleep(SPAN)

    async def job():
        await asyncio.sleep(60)

def helper():
    time.sleep(0.3)
"""
    assert [found.line for found in fixed_waits("a.py", text)] == [5, 11]
