"""Blocks of code of the pages, run as a reader would."""

from __future__ import annotations

import ast
import inspect
from typing import Any


async def run_block(block: str, names: dict[str, Any]) -> None:
    """Run a block, which may `await`, with these names; what it defines is added to them."""
    code = compile(block, "<page>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    ended = eval(code, names)
    if inspect.isawaitable(ended):
        await ended
