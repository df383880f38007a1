"""What an enqueue returns: a job to wait for, look at or cancel."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from tidework.client import Client
from tidework.errors import ResultError
from tidework.model.backlog import JobRecord
from tidework.model.values.results import ResultType

R = TypeVar("R")


class JobHandle(Generic[R]):
    """An enqueued job. ``inserted``: False if the id was known already, or if the job is another
    one, which holds the unique key."""

    __slots__ = ("_client", "_result", "id", "inserted", "queue")

    def __init__(
        self,
        client: Client,
        job_id: str,
        queue: str,
        *,
        inserted: bool = True,
        result: ResultType | None = None,
    ) -> None:
        self.id = job_id
        self.queue = queue
        self.inserted = inserted
        self._client = client
        self._result = result

    def __repr__(self) -> str:
        return f"<job {self.id} in {self.queue}>"

    async def result(self, *, timeout: float | None = None) -> R:
        """Wait for the end; the result, in the type that the task declares (JSON data if it
        declares none).

        timeout: seconds; None waits for ever. Raises what Client.result does, and ResultError too
        for a result that does not fit that type.
        """
        record = await self._client.wait_succeeded(
            self.id, queue=self.queue, timeout=timeout, is_known=True
        )
        return self._read(record)

    def result_sync(self, *, timeout: float | None = None) -> R:
        """Blocking form of ``result``."""
        record = self._client.wait_succeeded_sync(
            self.id, queue=self.queue, timeout=timeout, is_known=True
        )
        return self._read(record)

    def _read(self, record: JobRecord) -> R:
        if self._result is None:
            return cast("R", record.result)
        try:
            found: R = self._result.read(record.result_json, record.result)
        except ValueError as error:
            raise ResultError(self.id, str(error)) from error
        return found

    async def get(self) -> JobRecord:
        """Everything known of the job."""
        return await self._client.get(self.id, queue=self.queue)

    def get_sync(self) -> JobRecord:
        """Blocking form of ``get``."""
        return self._client.get_sync(self.id, queue=self.queue)

    async def cancel(self) -> str:
        """Cancel it; see Client.cancel."""
        return await self._client.cancel(self.id, queue=self.queue)

    def cancel_sync(self) -> str:
        """Blocking form of ``cancel``."""
        return self._client.cancel_sync(self.id, queue=self.queue)
