"""Notices edits: of the documents, and of the Python files beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from enum import Enum
from pathlib import Path

from watchfiles import DefaultFilter, awatch

from tidework.manifests.reading import SUFFIXES


class Change(Enum):
    """What was edited. Code asks for more: its workers are replaced."""

    DOCUMENTS = "documents"
    CODE = "code"


async def watch(
    paths: Sequence[Path], folders: Callable[[], Collection[Path]]
) -> AsyncIterator[Change]:
    """Yield once per burst of edits, for ever.

    paths: files and folders with documents; folders: where the applications are imported from
    """
    documents = {path.resolve() for path in paths}
    looked_at = {path if path.is_dir() else path.parent for path in documents}
    looked_at |= {folder.resolve() for folder in folders()}
    ignoring = DefaultFilter()
    async for changes in awatch(*looked_at, watch_filter=ignoring, step=50, debounce=400):
        edited = [Path(name) for _, name in changes]
        if any(path.suffix == ".py" for path in edited):
            yield Change.CODE
        elif any(_is_document(path, documents) for path in edited):
            yield Change.DOCUMENTS


def _is_document(path: Path, documents: Collection[Path]) -> bool:
    return path in documents or (path.parent in documents and path.suffix in SUFFIXES)
