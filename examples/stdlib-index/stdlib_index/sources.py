"""Which files are measured: the running Python's standard library, and three that are broken.

The library's own test data stays in, deliberately bad syntax included: that is what makes it real.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(sysconfig.get_path("stdlib"))
BROKEN = Path(__file__).resolve().parents[1] / "broken"
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders below the library that hold what somebody installed."""


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """A file to measure.

    name: where it is within the library, as ``json/decoder.py``, or ``broken/...``
    path: absolute
    """

    name: str
    path: str


def find_sources(library: Path = LIBRARY, broken: Path = BROKEN) -> list[SourceFile]:
    """Every ``.py`` file of the library and of ``broken``, in the order of their names."""
    return sorted(
        SourceFile(f"{prefix}{path.relative_to(folder).as_posix()}", str(path))
        for folder, prefix in ((library, ""), (broken, "broken/"))
        for path in folder.rglob("*.py")
        if not INSTALLED & set(path.relative_to(folder).parts) and path.is_file()
    )
