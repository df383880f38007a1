"""progress and checkpoint: for jobs that take long.

    for page in checkpoint(pages, key=lambda page: page.number):
        add_to_index(page)
        progress(page.number, len(pages))

What a job says goes past its worker's supervisor into the queue, at most twice a second, and in
full before the job ends. A checkpoint goes on after the last item that was told as finished: what
came after that is done again, and nothing is left out. Outside of a job progress does nothing, and
checkpoint is a plain iteration.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from tidework.broker.broker import Producer
from tidework.broker.connection.transport import drive
from tidework.client import Client
from tidework.errors import (
    BrokerUnavailableError,
    CancelRequested,
    CheckpointError,
    ConfigurationError,
)
from tidework.model.current import CurrentJob, RunningJob, running_job
from tidework.model.endings import Released, ReleasedAtOnce
from tidework.model.identity import QueueName
from tidework.model.progress import (
    MOST_CHECKPOINTS,
    NAME_LIMIT,
    Key,
    Number,
    check_key,
    progress_text,
    where,
)

T = TypeVar("T")
Items = Iterable[T] | AsyncIterable[T]
Source = Items[T] | Callable[[Any], Items[T]]

_client = Client()


class CancelledInLoop(CancelRequested, asyncio.CancelledError):
    """CancelRequested as it ends an ``async for``: for asyncio the same as a cancellation."""


def progress(done: Number, total: Number | None = None, note: str = "") -> None:
    """Say how far the running job is: ``done`` of ``total``, None if nobody knows how many.

    note: one line for people, of which 200 characters are kept. `tidework job get` and `worker get`
    show it until the job ends. It costs microseconds, never waits, and can be called for each item;
    from threads too that the job starts with asyncio.to_thread. Outside of a job it does nothing.
    Raises ConfigurationError for values that are not numbers from 0 on, or no text.
    """
    progress_text(done, total, note)
    job = running_job.get()
    if isinstance(job, RunningJob):
        job.note_progress(done, total, note)


def checkpoint(
    iterable: Source[T], *, key: Callable[[T], Key] | None = None, name: str = ""
) -> Checkpoint[T]:
    """Iterate, with ``for`` or ``async for``, and go on there when the job runs again.

    iterable: an iterable or async iterable that has the same items in the same order each time; or
              a function that takes the key of the last finished item (None at first) and returns
              one with what comes after it
    key:      names an item: a text of at most 200 characters, a number or a boolean. None: the
              number of finished items stands for them
    name:     tells several checkpoints of one job apart; at most 16 of them, 40 characters each
    An item is finished when the loop asks for the next one. When the worker is to end, or somebody
    has the job cancelled, the loop ends there: the job is released uncounted to go on elsewhere,
    or is cancelled (CancelRequested). It is released likewise if Redis is away when the first
    loop begins. Raises ConfigurationError for a bad value, CheckpointError if the item where it
    stands does not come, BrokerError if Redis refuses to say where that is.
    """
    if len(name) > NAME_LIMIT or not name.isprintable():
        raise ConfigurationError(
            f"checkpoint(name={name!r:.100}): give at most {NAME_LIMIT} printable characters"
        )
    if not isinstance(iterable, Iterable | AsyncIterable) and not callable(iterable):
        raise ConfigurationError(
            f"{where(name)}: {iterable!r:.100} cannot be iterated; give a list, a generator, or a "
            "function that returns one"
        )
    return Checkpoint(iterable, key, name)


class Checkpoint(Generic[T]):
    """One use of ``checkpoint``."""

    def __init__(self, source: Source[T], key: Callable[[T], Key] | None, name: str) -> None:
        self._source = source
        self._key = key
        self._name = name

    def __iter__(self) -> Iterator[T]:
        job = running_job.get()
        if not isinstance(job, RunningJob):
            return iter(self._sync_items(None))
        if job.positions is None:
            job.positions = drive(self._read_positions(job, _client.blocking_broker()))
        return self._in_job(self._begin(job))

    async def __aiter__(self) -> AsyncIterator[T]:
        job = running_job.get()
        if not isinstance(job, RunningJob):
            async for item in _as_async(self._items(None)):
                yield item
            return
        if job.positions is None:
            found = await self._read_positions(job, _client.broker())
            if job.positions is None:  # another checkpoint of the job may have asked meanwhile
                job.positions = found
        with self._begin(job) as walk:
            walk.look(CancelledInLoop)
            async for item in _as_async(self._items(walk.last)):
                if (key := walk.key_of(item)) is not None:
                    yield item
                    walk.finish(key)
                    walk.look(CancelledInLoop)
            walk.end()

    def _in_job(self, walk: _Walk[T]) -> Iterator[T]:
        with walk:
            walk.look(CancelRequested)
            for item in self._sync_items(walk.last):
                if (key := walk.key_of(item)) is not None:
                    yield item
                    walk.finish(key)
                    walk.look(CancelRequested)
            walk.end()

    async def _read_positions(self, job: RunningJob, broker: Producer) -> dict[str, Key]:
        try:
            return dict(await broker.checkpoints(*_place_of(job.describe())))
        except BrokerUnavailableError as error:
            # Nothing of the loop was done: that Redis is away is no fault of the job.
            raise Released(
                f"the position of {where(self._name)} cannot be read: {error}"
            ) from error

    def _begin(self, job: RunningJob) -> _Walk[T]:
        return _Walk(job, self._name, self._key, starts_there=callable(self._source))

    def _items(self, last: Key | None) -> Items[T]:
        return self._source(last) if callable(self._source) else self._source

    def _sync_items(self, last: Key | None) -> Iterable[T]:
        items = self._items(last)
        if isinstance(items, Iterable):
            return items
        raise ConfigurationError(
            f"{where(self._name)}: {type(items).__name__} cannot be iterated with 'for'; "
            "write 'async for', in an 'async def' task"
        )


class _Walk(Generic[T]):
    """One checkpoint on its way through the items of an attempt.

    last: key of the item that was finished last in earlier attempts, None if none was
    """

    def __init__(
        self, job: RunningJob, name: str, key: Callable[[T], Key] | None, *, starts_there: bool
    ) -> None:
        if name in job.names:
            raise ConfigurationError(
                f"{where(name)} is the second one of this name in its job; give each a name"
            )
        if len(job.names) >= MOST_CHECKPOINTS:
            raise ConfigurationError(
                f"{where(name)}: a job has {MOST_CHECKPOINTS} checkpoints at most"
            )
        assert job.positions is not None
        job.names |= {name}
        self.last = job.positions.get(name)
        self._job = job
        self._name = name
        self._key = key
        self._awaited = None if starts_there else self.last
        self._count = 0
        if starts_there and key is None and self.last is not None:
            self._count = int(self.last)

    def __enter__(self) -> _Walk[T]:
        self._job.loops += 1
        self._job.say_positions()
        return self

    def __exit__(self, *_: object) -> None:
        self._job.loops -= 1

    def look(self, cancelled: Callable[[], CancelRequested]) -> None:
        """Between two items: raises what ends the loop here."""
        job = self._job
        if job.stopped:
            job.interrupted = True
            raise cancelled()
        if job.release_requested:
            raise ReleasedAtOnce(f"the worker leaves: {where(self._name)} goes on elsewhere")

    def key_of(self, item: T) -> Key | None:
        """Of an item that is to be done; None if it was finished in an earlier attempt."""
        self._count += 1
        key = self._count if self._key is None else check_key(self._key(item), self._name)
        if self._awaited is None:
            return key
        if type(key) is type(self._awaited) and key == self._awaited:
            self._awaited = None
        return None

    def finish(self, key: Key) -> None:
        """The loop asks for the item after this one."""
        self._job.note_position(self._name, key)

    def end(self) -> None:
        """There are no more items."""
        if self._awaited is not None:
            raise CheckpointError(where(self._name), self._awaited)


def _place_of(job: CurrentJob) -> tuple[QueueName, str]:
    return QueueName(job.namespace, job.queue), job.id


async def _as_async(items: Items[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item
