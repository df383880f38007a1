"""Constants that stand in the scripts and in Python as well."""

from __future__ import annotations

import re
from importlib.resources import files


def _text(script: str) -> str:
    return (files("tidework.broker") / f"scripts/{script}.lua").read_text("utf-8")


def lua_number(script: str, name: str) -> int:
    """The number that follows a name."""
    found = re.search(rf"\b{name}\b[^=\n]*= (\d+)", _text(script))
    assert found, f"{script}.lua has no number {name}"
    return int(found[1])


def lua_steps() -> list[tuple[str, int, int]]:
    """Letter, minutes and places of the rings of points."""
    found = re.findall(r"\{'(\w)', (\d+), (\d+)\}", _text("fragments/points"))
    return [(letter, int(minutes), int(places)) for letter, minutes, places in found]
