"""Raises where a signal handler might: at any one of the steps where the interpreter looks."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any

_LOOKS_AFTER = ("RESUME", "CALL", "JUMP_BACKWARD")
"""Handlers run when a function begins, when a call of C ends, when a loop goes round."""


class Interrupted(BaseException):
    """What a handler raises."""


def interrupted_at(step: int, act: Callable[[], Any], *, within: str | tuple[str, ...]) -> bool:
    """Do it, and raise at one of the steps where handlers run, in files whose names end so.

    False if it was done before that step came.
    """
    left = step
    before: dict[FrameType, int] = {}

    def count(frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(within):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            code, at = frame.f_code, frame.f_lasti
            if _may_interrupt(code, before.get(frame), at):
                left -= 1
                if not left:
                    raise Interrupted
            before[frame] = at
        return count

    tracing = sys.gettrace()
    sys.settrace(count)
    try:
        act()
    except Interrupted:
        return True
    finally:
        before.clear()
        sys.settrace(tracing)
    return False


def _may_interrupt(code: CodeType, last: int | None, at: int) -> bool:
    if last is None or not dis.opname[code.co_code[last]].startswith(_LOOKS_AFTER):
        return False
    # A handler that raises does so in the last step, and what we raise comes in the next one: the
    # same to the program unless a `try` or `with` begins or ends between the two.
    return _guarded(code, last) == _guarded(code, at)


@cache
def _guarded(code: CodeType, at: int) -> int | None:
    """Where the program goes on if this step raises."""
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return next((found.target for found in table if found.start <= at < found.end), None)
