"""Keeps a template process running, passes its reports on to the slots, and changes the version.

The first import decides whether the worker starts. Later a template that died is started again
with a growing pause; its children died with it, and the slots have settled what they ran.
To load the application anew, a second template imports it beside the first. If that succeeds, it
starts all children from then on, and the first one ends with its last child. If not, nothing
has changed. Whoever asks for it again meanwhile has the import begin again: the files on disk may
have changed under it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Protocol

from tidework.backoff import Backoff
from tidework.errors import AppImportError
from tidework.model.task import TaskSpec
from tidework.worker import process
from tidework.worker.child_config import ChildConfig
from tidework.worker.template.generation import Generation
from tidework.worker.template.launch import TemplateProcess
from tidework.worker.template.link import Hello

END_PATIENCE = 2.0
"""Seconds in which the template has to end by itself."""

logger = logging.getLogger(__name__)


class ChildPool(Protocol):
    """Who orders children and is told what becomes of them."""

    def open(self) -> None:
        """The template is ready: children may be ordered."""

    def renew(self) -> None:
        """Another version of the application has taken over."""

    def on_child_started(self, key: int, pid: int, pidfd: int | None) -> None:
        """The child of this order runs. The pidfd is the receiver's to close."""

    def on_child_refused(self, key: int, reason: str) -> None:
        """The system did not give us a process for this order."""

    def on_child_ended(self, pid: int, code: int | None) -> None:
        """A child has ended and was reaped; code as in process.reap_leader."""

    def on_template_ended(self, keys: Collection[int]) -> None:
        """A template has ended, and with it the children of these orders."""


class TemplateKeeper:
    """The worker's templates: one, and those of versions that come or go.

    specs:       the application's tasks by name, as the last template knew them
    async_tasks: names of those that are async functions
    on_reloaded: called when another version of the application has taken over
    first:       a template that runs already
    """

    def __init__(self, config: ChildConfig, first: TemplateProcess | None = None) -> None:
        self.specs: dict[str, TaskSpec] = {}
        self.async_tasks: set[str] = set()
        self.on_reloaded: Callable[[], None] = lambda: None
        self._config = config
        self._current = Generation(config, self, first)
        self._next: Generation | None = None
        self._leaving: list[Generation] = []
        self._pool: ChildPool | None = None
        self._backoff = Backoff(timedelta(seconds=0.2), timedelta(seconds=30))
        self._imported: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reload_wanted = False
        self._final = False
        self._closing = False
        self._warned: tuple[tuple[str, ...], ...] = ((), ())

    @property
    def pid(self) -> int | None:
        """Of the running template."""
        return self._current.link.pid

    @property
    def template_file(self) -> int | None:
        """Where the running template writes its stacks."""
        return self._current.link.file

    def is_template(self, pid: int) -> bool:
        """Is it one of our templates?"""
        return any(generation.link.pid == pid for generation in self._all())

    def file_of(self, pid: int) -> int | None:
        """Where the child writes its stacks, None if there is no such child."""
        found = (generation.files.get(pid) for generation in self._all())
        return next((file for file in found if file is not None), None)

    async def start(self, pool: ChildPool) -> None:
        """Start a template whose children serve ``pool``; returns when the application is
        imported. Raises AppImportError.
        """
        self._pool = pool
        self._current.link.start()
        await asyncio.shield(self._imported)

    def reload(self) -> None:
        """Have jobs that start from now on run the application as it is on disk now."""
        if self._final:
            return
        if not self._imported.done():
            self._reload_wanted = True  # what is imported now may have been read already
            return
        if self._next is not None:
            logger.info("the import begins again", extra={"event": "import_repeated"})
            self._drop_next()
        self._next = Generation(self._config, self)
        self._next.link.start()

    def keep_version(self) -> None:
        """The worker drains: no other version is loaded from now on."""
        self._final = True
        self._drop_next()

    def _drop_next(self) -> None:
        if self._next is not None:
            self._next.link.kill()
            self._leaving.append(self._next)
            self._next = None

    def reap(self) -> None:
        """To be called at SIGCHLD."""
        for generation in self._all():
            generation.link.reap()

    async def close(self) -> None:
        """End the templates."""
        self.keep_version()
        self._closing = True
        for generation in self._all():
            generation.link.close()
            if not self._imported.done():
                generation.link.kill()  # nobody waits for the import any more
        try:
            async with asyncio.timeout(END_PATIENCE):
                await self._wait_ended()
        except TimeoutError:
            for generation in self._all():
                generation.link.kill()
            await self._wait_ended()

    async def _wait_ended(self) -> None:
        for generation in self._all():
            await generation.link.wait_ended()

    def _all(self) -> list[Generation]:
        coming = [] if self._next is None else [self._next]
        return [self._current, *coming, *self._leaving]

    def order_child(self, key: int, places: int, pipe: int, permits: int) -> bool:
        return self._current.order_child(key, places, pipe, permits)

    def kill(self) -> None:
        owing = [generation for generation in self._all() if generation.ordered]
        for generation in owing or [self._current]:
            generation.link.kill()

    def on_hello(self, generation: Generation, hello: Hello) -> None:
        if generation not in (self._current, self._next) or self._closing:
            return
        self._backoff.reset()
        self.specs.clear()
        self.specs.update(hello.specs)
        self.async_tasks.clear()
        self.async_tasks.update(hello.async_tasks)
        self._warn(hello)
        if generation is self._next:
            self._take_over(generation)
            return
        if not self._imported.done():
            self._imported.set_result(None)
        if self._pool is not None:
            self._pool.open()
        if self._reload_wanted and self._imported.done():
            self._reload_wanted = False
            self.reload()

    def _take_over(self, generation: Generation) -> None:
        former, self._current, self._next = self._current, generation, None
        self._leaving.append(former)
        extra = {"event": "application_reloaded", "tasks": len(self.specs)}
        logger.info("the application was loaded again", extra=extra)
        if self._pool is not None:
            self._pool.renew()
            self._pool.open()  # the former one may have been away
        self.on_reloaded()
        self._end_if_empty(former)

    def _end_if_empty(self, generation: Generation) -> None:
        if generation in self._leaving and generation.is_empty:
            generation.link.close()
            if generation.link.pid is None:
                self._leaving.remove(generation)
            else:
                loop = asyncio.get_running_loop()
                loop.call_later(END_PATIENCE, generation.link.kill)

    def _warn(self, hello: Hello) -> None:
        """Of what the application does at import; once for the same."""
        found = (hello.threads, hello.connections)
        if found == self._warned:
            return
        self._warned = found
        if hello.connections:
            logger.warning(
                "the application opens connections at import, which all its processes share, so "
                "that one reads the replies to another; open them in the tasks instead, at the "
                "first use in each process",
                extra={"event": "connections_shared", "peers": ", ".join(hello.connections)},
            )
        if hello.threads:
            logger.warning(
                "the application starts threads at import, so its processes cannot be forked: "
                "each slot imports it anew, which costs memory and time; "
                "start threads in the tasks instead",
                extra={"event": "fork_impossible", "threads": ", ".join(hello.threads)},
            )

    def on_child_started(self, key: int, pid: int, pidfd: int | None) -> None:
        if self._pool is not None:
            self._pool.on_child_started(key, pid, pidfd)

    def on_child_refused(self, key: int, reason: str) -> None:
        if self._pool is not None:
            self._pool.on_child_refused(key, reason)

    def on_child_ended(self, generation: Generation, pid: int, code: int | None) -> None:
        if self._pool is not None:
            self._pool.on_child_ended(pid, code)
        self._end_if_empty(generation)

    def on_template_ended(self, generation: Generation, code: int | None) -> None:
        children = generation.take_children()
        if self._pool is not None:
            self._pool.on_template_ended(children)
        reason, generation.failure = generation.failure, ""
        if generation in self._leaving:
            self._leaving.remove(generation)
        elif self._closing:
            return
        elif generation is self._next:
            self._next = None
            logger.error(
                "the application is not loaded again, the version before goes on: %s",
                reason or self._died_at_import(code),
                extra={"event": "reload_failed"},
            )
        elif not self._imported.done():
            error = AppImportError(reason or self._died_at_import(code))
            self._imported.set_exception(error)
        else:
            self._start_later(reason or process.describe_exit(code))

    def _died_at_import(self, code: int | None) -> str:
        return (
            f"the application {self._config.app!r} ended its process while it was imported "
            f"({process.describe_exit(code)}); see what its modules do at import"
        )

    def _start_later(self, text: str) -> None:
        delay = self._backoff.next()
        logger.error(
            "the template process ended: %s; the next starts in %s",
            text,
            delay,
            extra={"event": "template_ended"},
        )
        loop = asyncio.get_running_loop()
        loop.call_later(delay.total_seconds(), self._start_again, self._current)

    def _start_again(self, generation: Generation) -> None:
        if not self._closing and generation is self._current:
            generation.link.start()
