"""The inventory: every TaskQueue and CronTask as last seen, level-based.

Two sources feed it: the watch (handlers/) tells changes as they come, and a complete relist, at
the start and once a minute, puts right what the watch missed. Invariants: ``complete`` is False
until everything was listed once, and nobody deletes anything before; an older version of an
object never replaces a newer one. Objects are shared: whoever changes one copies it first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from tidework_operator.cluster import Cluster, ClusterError, Kind, Object
from tidework_operator.patience import USUAL, Patience

logger = logging.getLogger(__name__)

KINDS = (Kind.TASK_QUEUE, Kind.CRON_TASK)
RELIST_EVERY = timedelta(seconds=60)
RELIST_AGAIN = timedelta(seconds=2)

_HASTY_ROUNDS = 3

_NOT_FOUND = 404

Key = tuple[Kind, str, str]
"""Kind, namespace, name."""


class Inventory:
    """Objects by kind, namespace and name.

    changes:  grows with every change, so that a reader can tell whether to look again
    listings: complete lists so far; trouble: why the last one failed, '' if it did not
    silent:  the watch told nothing of what the relist before the last one had found: it is dead
    """

    def __init__(self) -> None:
        self.complete = False
        self.changes = 0
        self.listings = 0
        self.trouble = ""
        self.silent = False
        self._objects: dict[Key, Object] = {}
        self._listeners: list[Callable[[], None]] = []
        self._told: set[Key] = set()
        self._untold: set[Key] = set()

    def objects(self, kind: Kind) -> list[Object]:
        """Every object of the kind, by namespace and name. From any thread."""
        held = self._objects.copy()
        keys = sorted(key[1:] for key in held if key[0] is kind)
        return [held[kind, namespace, name] for namespace, name in keys]

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object; None if there is none, as far as we know."""
        return self._objects.get((kind, namespace, name))

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` after every change, and when the inventory becomes complete."""
        self._listeners.append(callback)

    def note(self, kind: Kind, found: Object, *, deleted: bool = False) -> None:
        """The watch told of an object."""
        key = _key(kind, found)
        self._told.add(key)
        self._untold.discard(key)
        held = self._objects.get(key)
        if held is not None and _is_older(found, held):
            return
        if deleted:
            if self._objects.pop(key, None) is not None:
                self._changed()
        elif held is None or _version(held) != _version(found):
            self._objects[key] = _trimmed(kind, found)
            self._changed()

    def begin_relist(self) -> None:
        """A list is about to be asked for: what the watch tells from now on is newer than it."""
        self._told.clear()

    def finish_relist(
        self, found: Mapping[Kind, Sequence[Object]], *, settled: bool = True
    ) -> None:
        """Everything that there was when the list was asked for.

        settled: False while the watch begins: what it has missed proves nothing
        """
        listed = {_key(kind, each): each for kind in KINDS for each in found[kind]}
        self.silent = settled and bool(self._untold)
        self._untold.clear()
        differs = False
        for key, each in listed.items():
            held = self._objects.get(key)
            if key in self._told or (held is not None and _is_same_or_older(each, held)):
                continue
            self._objects[key] = _trimmed(key[0], each)
            self._untold.add(key)
            differs = True
        for key in self._objects.keys() - listed.keys() - self._told:
            del self._objects[key]
            self._untold.add(key)
            differs = True
        self.listings += 1
        if not settled:
            self._untold.clear()
        if not self.complete:
            self.complete = True
            differs = True
        if differs:
            self._changed()

    def _changed(self) -> None:
        self.changes += 1
        for listener in self._listeners:
            listener()


class Relist:
    """``tick`` is for a Loop: list everything, once a minute.

    What goes between a list of ours and the first one of the watch, the watch never tells of: so
    after each begin of the watch there are two lists in quick succession.

    namespaces: those to list; empty = all of the cluster
    on_silent:  called when the relist proves that the watch is dead
    """

    def __init__(
        self,
        cluster: Cluster,
        inventory: Inventory,
        namespaces: Collection[str] = (),
        *,
        every: timedelta = RELIST_EVERY,
        on_silent: Callable[[], None] = lambda: None,
        patience: Patience = USUAL,
    ) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._every = every
        self._on_silent = on_silent
        self._soon = patience.relist_soon
        self._hasty = _HASTY_ROUNDS

    def hasten(self) -> None:
        """The watch begins anew: the next rounds follow soon upon each other."""
        self._hasty = _HASTY_ROUNDS

    async def tick(self) -> timedelta:
        """One complete relist; the wait until the next. What went wrong is told once."""
        inventory = self._inventory
        inventory.begin_relist()
        try:
            found = {kind: await self._list(kind) for kind in KINDS}
        except ClusterError as error:
            trouble = _explain(error)
            if not inventory.trouble:
                logger.warning("%s", trouble, extra={"event": "listing_failed"})
            inventory.trouble = trouble
            return RELIST_AGAIN
        if inventory.trouble:
            logger.info(
                "TaskQueues and CronTasks can be listed again", extra={"event": "listing_back"}
            )
            inventory.trouble = ""
        settled = self._hasty == 0
        inventory.finish_relist(found, settled=settled)
        if inventory.silent:
            logger.warning(
                "the watch missed recent changes; restarting it",
                extra={"event": "watch_silent"},
            )
            self.hasten()
            self._on_silent()
        if settled:
            return self._every
        self._hasty -= 1
        return self._soon

    async def _list(self, kind: Kind) -> Sequence[Object]:
        objects: list[Object] = []
        for namespace in self._namespaces:
            objects += await self._cluster.list(kind, namespace=namespace)
        return objects


def _explain(error: ClusterError) -> str:
    remedy = ""
    if error.status == _NOT_FOUND:
        remedy = "; the CustomResourceDefinitions of Tidework are not installed: apply crds/"
    if error.is_forbidden:
        remedy = "; give the operator's service account the rights of its chart"
    return f"TaskQueues and CronTasks cannot be listed: {error}{remedy}"


def _key(kind: Kind, found: Object) -> Key:
    metadata = found["metadata"]
    return kind, metadata["namespace"], metadata["name"]


def _version(found: Object) -> str:
    version: str = found["metadata"].get("resourceVersion", "")
    return version


def _is_older(found: Object, held: Object) -> bool:
    """Versions count up as integers; of anything else we cannot say (Kubernetes' KEP 5504)."""
    new, old = _version(found), _version(held)
    return new.isdecimal() and old.isdecimal() and int(new) < int(old)


def _is_same_or_older(found: Object, held: Object) -> bool:
    return _version(found) == _version(held) or _is_older(found, held)


def _trimmed(kind: Kind, found: Object) -> Object:
    """Without managedFields, which are the larger half; with the head that lists leave out."""
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    head = {"apiVersion": kind.value.api_version, "kind": kind.value.kind}
    return {**head, **found, "metadata": metadata}
