"""Keeps a template process running, and passes its reports on to the slots.

The first import decides whether the worker starts. Later a template that died is started again
with a growing pause; its children died with it, and the slots have settled what they ran.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from tidework.errors import AppImportError
from tidework.model.task import TaskSpec
from tidework.worker import process
from tidework.worker.backoff import Backoff
from tidework.worker.child import ChildConfig
from tidework.worker.slots import SlotPool
from tidework.worker.template_link import Hello, TemplateLink

END_PATIENCE = 2.0
"""Seconds in which the template has to end by itself."""

logger = logging.getLogger(__name__)


class TemplateKeeper:
    """The worker's one template.

    specs: the application's tasks by name, as the last template knew them
    """

    def __init__(self, config: ChildConfig) -> None:
        self.specs: dict[str, TaskSpec] = {}
        self._app = config.app
        self._link = TemplateLink(config, self)
        self._pool: SlotPool | None = None
        self._backoff = Backoff(timedelta(seconds=0.2), timedelta(seconds=30))
        self._imported: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure = ""
        self._closing = False
        self._warned = False

    @property
    def pid(self) -> int | None:
        """Of the running template."""
        return self._link.pid

    async def start(self, pool: SlotPool) -> None:
        """Start a template whose children serve ``pool``; returns when the application is
        imported. Raises AppImportError.
        """
        self._pool = pool
        self._link.start()
        await asyncio.shield(self._imported)

    def reap(self) -> None:
        """To be called at SIGCHLD."""
        self._link.reap()

    async def close(self) -> None:
        """End the template."""
        self._closing = True
        self._link.close()
        if not self._imported.done():
            self._link.kill()  # nobody waits for the import any more
        try:
            async with asyncio.timeout(END_PATIENCE):
                await self._link.wait_ended()
        except TimeoutError:
            self._link.kill()
            await self._link.wait_ended()

    def order_child(self, key: int, pipe: int, permits: int) -> bool:
        """Of Orders."""
        return self._link.order_child(key, pipe, permits)

    def kill(self) -> None:
        """Of Orders."""
        self._link.kill()

    def on_hello(self, hello: Hello) -> None:
        """Of TemplateEvents."""
        self._backoff.reset()
        self.specs.clear()
        self.specs.update(hello.specs)
        if hello.threads and not self._warned:
            self._warned = True
            logger.warning(
                "the application starts threads at import, so its processes cannot be forked: "
                "each slot imports it anew, which costs memory and time; "
                "start threads in the tasks instead",
                extra={"threads": ", ".join(hello.threads)},
            )
        if not self._imported.done():
            self._imported.set_result(None)
        if self._pool is not None and not self._closing:
            self._pool.open()

    def on_import_failed(self, reason: str) -> None:
        """Of TemplateEvents."""
        self._failure = reason

    def on_child_started(self, key: int, pid: int, pidfd: int | None) -> None:
        """Of TemplateEvents."""
        if self._pool is not None:
            self._pool.on_child_started(key, pid, pidfd)

    def on_child_refused(self, key: int, reason: str) -> None:
        """Of TemplateEvents."""
        if self._pool is not None:
            self._pool.on_child_refused(key, reason)

    def on_child_ended(self, pid: int, code: int | None) -> None:
        """Of TemplateEvents."""
        if self._pool is not None:
            self._pool.on_child_ended(pid, code)

    def on_template_ended(self, code: int | None) -> None:
        """Of TemplateEvents."""
        if self._pool is not None:
            self._pool.on_template_ended()
        if self._closing:
            return
        reason = self._failure or (
            f"the application {self._app!r} ended its process while it was imported "
            f"({process.describe_exit(code)}); see what its modules do at import"
        )
        if not self._imported.done():
            self._imported.set_exception(AppImportError(reason))
            return
        text = self._failure or process.describe_exit(code)
        self._failure = ""
        delay = self._backoff.next()
        logger.error("the template process ended: %s; the next starts in %s", text, delay)
        asyncio.get_running_loop().call_later(delay.total_seconds(), self._start_again)

    def _start_again(self) -> None:
        if not self._closing:
            self._link.start()
