"""One loop in the product, loop.py: elsewhere ``while True`` needs a reason.

A loop without a condition says nowhere when it ends, nor that a stop or a nudge reaches it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, sources

PRODUCT = ("worker/src/", "operator/src/")
# A function whose loops may be without a condition -> why.
ALLOWED = {
    "tidework/broker/connection/blocking_wire.py: take": (
        "each pass looks for a connection in three ways; the deadline begins when all have failed"
    ),
    "tidework/broker/redis/readouts.py: list_jobs": (
        "each call looks at a bounded number of jobs, and its reply says whether there are more"
    ),
    "tidework/model/identity.py: take": (
        "again where a signal handler took a number in between: no pass but the last has an effect"
    ),
    "tidework/worker/child/soft_timeout.py: _drive": (
        "drives a coroutine, which ends by an exception, as `yield from` does"
    ),
}


def endless(tree: ast.AST, within: str = "") -> Iterator[str]:
    """The functions with a loop that has no condition."""
    for node in ast.iter_child_nodes(tree):
        name = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else within
        match node:
            case ast.While(test=ast.Constant(value=value)) if value:
                yield name
        yield from endless(node, name)


def found(root: Path) -> list[str]:
    return [
        f"{source.path.partition('src/')[2]}: {name}"
        for source in sources(root, ".py")
        if source.path.startswith(PRODUCT) and not source.path.endswith("tidework/loop.py")
        for name in endless(ast.parse(source.text))
    ]


def test_every_loop_of_the_product_says_when_it_ends() -> None:
    assert set(found(ROOT)) == set(ALLOWED), "give it a condition, or a Loop; else a reason here"


@pytest.mark.parametrize("condition", ["True", "1", '"for ever"'])
def test_one_without_a_condition_is_found(tmp_path: Path, condition: str) -> None:
    path = tmp_path / "worker/src/tidework/planted.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "class Kept:\n    async def serve(self):\n"
        f"        while self.open:\n            while {condition}:\n                pass\n"
    )

    assert found(tmp_path) == ["tidework/planted.py: serve"]
