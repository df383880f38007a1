"""TaskQueues as the models of tidework.manifests, read from the inventory's objects.

A reading is kept until the object's spec or what its author wrote around it changes: our own
status writes, which are most of the changes, cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tidework.manifests import ManifestErrors, TaskQueue, parse_document
from tidework_operator.cluster import Kind, Object
from tidework_operator.inventory import Inventory

Reading = TaskQueue | ManifestErrors


class TaskQueueDocuments:
    """Reads every TaskQueue of the inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._read: dict[str, tuple[str, Reading]] = {}

    def all(self) -> Iterator[tuple[Object, Reading]]:
        """Each object with its model, or with everything that is wrong with it."""
        objects = self._inventory.objects(Kind.TASK_QUEUE)
        here = {_place(found) for found in objects}
        self._read = {place: read for place, read in self._read.items() if place in here}
        for found in objects:
            yield found, self.read(found)

    def read(self, found: Object) -> Reading:
        """One object."""
        place, content = _place(found), _content(found)
        known = self._read.get(place)
        if known is not None and known[0] == content:
            return known[1]
        reading: Reading
        try:
            document = parse_document(found, file=f"TaskQueue {place}")
            assert isinstance(document, TaskQueue)
            reading = document
        except ManifestErrors as errors:
            reading = errors
        self._read[place] = (content, reading)
        return reading


def _place(found: Object) -> str:
    return f"{found['metadata']['namespace']}/{found['metadata']['name']}"


def _content(found: Object) -> str:
    metadata = found["metadata"]
    parts = [metadata.get(name) for name in ("uid", "labels", "annotations", "creationTimestamp")]
    return json.dumps([*parts, found.get("spec")], sort_keys=True)
