"""The applications of the running documents: tried out before anything rests on them.

A version that does not load, or that CronTasks do not fit, replaces nothing: workers of the version
before go on. Which files an application is made of is known from its trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tidework.errors import ManifestError
from tidework.manifests import ManifestErrors, Manifests
from tidework.model.identity import QueueName
from tidework.trial.documents import Checked, check_documents


class Applications:
    """Knows what was loaded last, and which edits wait to be loaded.

    common: environment of the workers of all queues
    """

    def __init__(self, common: Mapping[str, str]) -> None:
        self._common = dict(common)
        self._sources: dict[QueueName, frozenset[str] | None] = {}
        self._folders: dict[QueueName, Path] = {}
        self._edited: set[str] = set()
        self._found: tuple[Manifests, Checked] | None = None

    async def start(self, manifests: Manifests) -> list[ManifestError]:
        """Load the applications of the first documents; those that do not load are told.

        Raises ManifestErrors for CronTasks that do not fit theirs.
        """
        checked = await check_documents(manifests, self._common)
        if checked.faults:
            raise ManifestErrors(checked.faults)
        self._found = manifests, checked
        self.take_over()
        return [*checked.broken, *checked.unchecked]

    def note(self, code: frozenset[str]) -> bool:
        """Code was edited: is it part of an application?"""
        found = {path for path in code if any(self._is_part(q, path) for q in self._sources)}
        self._edited |= found
        return bool(found)

    async def reload(self, manifests: Manifests) -> frozenset[QueueName]:
        """Load the applications of these documents; the queues whose code has changed since
        ``take_over``. Raises ManifestErrors: then what was before goes on."""
        checked = await check_documents(manifests, self._common)
        if errors := [*checked.broken, *checked.unchecked, *checked.faults]:
            # Any file may mend it.
            self._sources |= {q: None for q, found in checked.sources.items() if found is None}
            self._folders = {**self._folders, **manifests.folders}
            raise ManifestErrors(errors)
        changed = frozenset(
            queue
            for queue in manifests.folders
            if any(
                path in (checked.sources[queue] or ()) or self._is_part(queue, path)
                for path in self._edited
            )
        )
        self._found = manifests, checked
        return changed

    def take_over(self) -> None:
        """What was loaded last is what runs now."""
        assert self._found is not None
        manifests, checked = self._found
        self._sources, self._folders = dict(checked.sources), dict(manifests.folders)
        self._edited.clear()

    def _is_part(self, queue: QueueName, path: str) -> bool:
        sources = self._sources.get(queue)
        if sources is not None:
            return path in sources
        folder = self._folders.get(queue)
        return folder is not None and Path(path).is_relative_to(folder)
