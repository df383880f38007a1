"""What running jobs say of themselves, on Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidework.broker.keys import queue_key
from tidework.broker.progress_text import positions_in
from tidework.broker.redis.calls import RedisCalls
from tidework.broker.redis.replies import reading
from tidework.broker.scripts import Value
from tidework.model.identity import QueueName
from tidework.model.progress import Key, ProgressNote


class RedisProgress(RedisCalls):
    """note_progress.lua. One that is lost with its primary costs items that are done again."""

    async def note_progress(
        self, queue: QueueName, notes: Sequence[ProgressNote]
    ) -> tuple[str, ...]:
        rest: list[Value] = [value for note in notes for value in note]
        refused = await self._run("note_progress", queue, rest)
        return tuple(raw.decode() for raw in refused)

    async def checkpoints(self, queue: QueueName, job_id: str) -> Mapping[str, Key]:
        found = await self.transport.command("HGET", queue_key(queue, "progress"), job_id)
        with reading(f"the checkpoints of job {job_id}", queue):
            return {} if found is None else positions_in(found)
