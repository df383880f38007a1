"""The CronTasks that the scheduler fires, replaceable while it runs.

Whoever reads the documents (files, a watch) replaces the whole set; the scheduler looks at the
version once per tick and takes what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tidework.errors import ConfigurationError
from tidework.model.identity import QueueName
from tidework.scheduler.spec import CronSpec


class CronRegistry:
    """uid -> CronSpec. ``version`` grows with every replacement."""

    def __init__(self, specs: Iterable[CronSpec] = (), queues: Iterable[QueueName] = ()) -> None:
        self.version = 0
        self._specs: Mapping[str, CronSpec] = {}
        self._queues: frozenset[QueueName] = frozenset()
        self._listeners: list[Callable[[], None]] = []
        self.replace(specs, queues)

    def replace(self, specs: Iterable[CronSpec], queues: Iterable[QueueName] = ()) -> None:
        """Fire these from now on and no others; lead ``queues`` too, which may have none.

        Raises ConfigurationError if two have one uid; then nothing is replaced.
        """
        found: dict[str, CronSpec] = {}
        for spec in specs:
            other = found.setdefault(spec.uid, spec)
            if other is not spec:
                raise ConfigurationError(
                    f"CronTasks {other.queue.namespace}/{other.name} and "
                    f"{spec.queue.namespace}/{spec.name} have the same uid {spec.uid!r}: "
                    "rename one of them"
                )
        self._specs = MappingProxyType(found)
        self._queues = frozenset(queues) | {spec.queue for spec in found.values()}
        self.version += 1
        for listener in self._listeners:
            listener()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after every replacement."""
        self._listeners.append(listener)

    @property
    def specs(self) -> Mapping[str, CronSpec]:
        """The present set; later replacements do not change what was returned."""
        return self._specs

    @property
    def queues(self) -> frozenset[QueueName]:
        """Every queue of the present set."""
        return self._queues

    def find(self, name: str) -> CronSpec | None:
        """By uid, by ``namespace/name``, or by a name that only one CronTask has."""
        if name in self._specs:
            return self._specs[name]
        found = [
            spec
            for spec in self._specs.values()
            if name in (spec.name, f"{spec.queue.namespace}/{spec.name}")
        ]
        return found[0] if len(found) == 1 else None

    def by_queue(self) -> dict[QueueName, dict[str, CronSpec]]:
        """The present set, queue by queue."""
        queues: dict[QueueName, dict[str, CronSpec]] = {}
        for uid, spec in self._specs.items():
            queues.setdefault(spec.queue, {})[uid] = spec
        return queues
