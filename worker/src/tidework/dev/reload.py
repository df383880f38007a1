"""Notices edits: of the documents, and of Python and commands files in the folders beside them.

The kernel's word only wakes us; whether a document changed is seen by comparing it with what was
read, so that an edit made before the watch stood is not missed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from watchfiles import Change as Edit
from watchfiles import DefaultFilter, awatch

from tidework.manifests.reading import SUFFIXES
from tidework.model.command import COMMANDS_SUFFIXES

# It tells of every edit, which would be one more edit where the log lies beside the documents.
logging.getLogger("watchfiles").setLevel(logging.WARNING)

LOOK_EVERY_MS = 1000


@dataclass(frozen=True, slots=True)
class Edits:
    """A burst of edits. documents: one of them has changed; code: other files, absolute"""

    documents: bool
    code: frozenset[str]


class _Relevant(DefaultFilter):
    """Python files, documents and commands files, outside of environments, caches and the like."""

    def __call__(self, change: Edit, path: str) -> bool:
        return path.endswith((".py", *COMMANDS_SUFFIXES)) and super().__call__(change, path)


Snapshot = Mapping[Path, tuple[int, int]]


def snapshot_of(paths: Sequence[Path]) -> Snapshot:
    """Time and size of each document file, those in folders included."""
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        inside = [p for p in path.iterdir() if p.suffix in SUFFIXES] if path.is_dir() else [path]
        for file in inside:
            try:
                status = file.stat()
            except OSError:
                found[file] = (0, 0)
            else:
                found[file] = (status.st_mtime_ns, status.st_size)
    return found


async def watch(
    paths: Sequence[Path],
    before: Snapshot,
    folders: Callable[[], Collection[Path]],
    commands: Callable[[], Collection[Path]] = tuple,
) -> AsyncIterator[Edits]:
    """Yield once per burst of edits, for ever. Whether code is part of an application is not known
    here.

    paths:    files and folders with documents; before: their snapshot from before they were read
    folders:  where the applications are imported from
    commands: commands files that are applications, absolute
    """
    looked_at = {path if path.is_dir() else path.parent for path in paths}
    looked_at |= {*folders(), *(path.parent for path in commands() if path.parent.is_dir())}
    edits = awatch(
        *{path.resolve() for path in looked_at},
        watch_filter=_Relevant(),
        step=50,
        debounce=400,
        rust_timeout=LOOK_EVERY_MS,
        yield_on_timeout=True,
    )
    async for changes in edits:
        now = snapshot_of(paths)
        own = {str(path) for path in commands()}
        code = frozenset(path for _, path in changes if path.endswith(".py") or path in own)
        if code or now != before:
            documents, before = now != before, now
            yield Edits(documents, code)
