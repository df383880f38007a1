"""Running kopf inside our own loop, as a side service that may die.

kopf believes that process and loop are its own: it takes over SIGTERM and SIGINT, and at its end
cancels every task that is younger than itself, ours included. So its tasks are spawned and ended
here, one by one, and the signals are given back to their owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import timedelta

import kopf

from tidework_operator.handlers.objects import Access, registry_of
from tidework_operator.inventory import Inventory
from tidework_operator.patience import USUAL, Patience

logger = logging.getLogger(__name__)

LONGEST_PAUSE = timedelta(seconds=60)
END_WITHIN = timedelta(seconds=10)

_NOT_YET = timedelta(seconds=0.5)


class Watch:
    """``tick`` is for a Loop: one life of kopf, from its start until it fails or is stopped.

    access:       how to get into the API server; asked again when it refuses
    namespaces:   those to watch; empty = all of the cluster
    take_signals: installs the program's own signal handlers again, which kopf has replaced

    on_end:       called when kopf has failed: it starts again after the next list that succeeds

    Before the first list it does not start: kopf watches no kind that it does not find at once.
    """

    def __init__(
        self,
        inventory: Inventory,
        access: Access,
        namespaces: Collection[str] = (),
        *,
        take_signals: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
        patience: Patience = USUAL,
    ) -> None:
        self.restarts = 0
        self._inventory = inventory
        self._access = access
        self._namespaces = tuple(namespaces)
        self._take_signals = take_signals
        self._on_end = on_end
        self._listings = 0
        self._enough = asyncio.Event()
        self._patience = patience
        self._pause = patience.watch_pause
        # It tells a page about every failed request; why it ended, we tell in one line.
        logging.getLogger("kopf").setLevel(logging.CRITICAL)

    def restart(self) -> None:
        """End the present life of kopf; the next tick begins another."""
        self._enough.set()

    async def tick(self) -> timedelta:
        """Watch until kopf ends; the pause before it is started again. Never raises."""
        if self._inventory.listings <= self._listings:
            return _NOT_YET
        self._enough.clear()
        began = asyncio.get_running_loop().time()
        why = await self._live()
        if self._enough.is_set():
            self._pause = self._patience.watch_pause
            return timedelta(0)
        self.restarts += 1
        if asyncio.get_running_loop().time() - began > LONGEST_PAUSE.total_seconds():
            self._pause = self._patience.watch_pause
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        seconds = pause.total_seconds()
        logger.warning(
            "the watch has ended and restarts in %g s: %s",
            seconds,
            why,
            extra={"event": "watch_ended"},
        )
        self._listings = self._inventory.listings
        self._on_end()
        return pause

    async def _live(self) -> str:
        """One life of kopf; why it ended."""
        tasks = await kopf.spawn_tasks(
            registry=registry_of(self._inventory, self._access),
            settings=_settings(self._patience),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
        )
        self._take_signals()
        enough = asyncio.create_task(self._enough.wait(), name="watch: enough")
        try:
            await asyncio.wait([*tasks, enough], return_when=asyncio.FIRST_COMPLETED)
        finally:
            enough.cancel()
            await _end(tasks)
        return _reason(tasks)


def _settings(patience: Patience) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 10
    settings.watching.inactivity_timeout = 70
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = patience.watch_resends
    # It would kill the whole process so long after it was told to end.
    settings.process.ultimate_exiting_timeout = None
    return settings


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    _, left = await asyncio.wait(tasks, timeout=END_WITHIN.total_seconds())
    if left:
        names = ", ".join(sorted(task.get_name() for task in left))
        logger.error("parts of the watch do not end: %s", names, extra={"event": "watch_not_ended"})


def _reason(tasks: Collection[asyncio.Task[None]]) -> str:
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            return f"{task.get_name()}: {str(error) or type(error).__name__}"
    return "asked to end"
