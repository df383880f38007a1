"""What running jobs say of themselves, in the memory model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidework.broker.progress_text import positions_in, text_of
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.model.progress import Key, ProgressNote
from tidework.testing.memory.calls import MemoryCalls


class MemoryProgress(MemoryCalls):
    """``progress`` of an entry."""

    async def note_progress(
        self, queue: QueueName, notes: Sequence[ProgressNote]
    ) -> tuple[str, ...]:
        state = self._open(queue)
        refused = []
        for note in notes:
            entry = state.entries.get(note.job_id)
            if entry is None or entry.state is not JobState.RUNNING or entry.token != note.token:
                refused.append(note.job_id)
            else:
                entry.progress = text_of(note, state.now, entry.progress)
        return tuple(refused)

    async def checkpoints(self, queue: QueueName, job_id: str) -> Mapping[str, Key]:
        entry = self._open(queue).entries.get(job_id)
        return {} if entry is None or not entry.progress else positions_in(entry.progress)
