"""Watches the pods of a queue: how many there were, and who held leases when told to go.

A cordoned worker claims nothing, so leases found right after a pod's deletion was seen were there
when it was decided.
"""

from __future__ import annotations

import subprocess
import threading
from types import TracebackType
from typing import Self

from tests.e2e.rig.cluster import Cluster
from tests.e2e.support.store import Store

COLUMNS = r'jsonpath={.metadata.name} {.metadata.deletionTimestamp}{"\n"}'


class PodWatch:
    """A context manager; `store` is used by no other thread meanwhile."""

    def __init__(self, cluster: Cluster, namespace: str, queue: str, store: Store) -> None:
        self.deleted: dict[str, int] = {}
        """Pod -> leases that it held when its deletionTimestamp was first seen."""
        self.peak = 0
        """The most pods that were there at one moment, those told to go not counted."""
        self._failure: BaseException | None = None
        self._queue = queue
        self._store = store
        self._alive: set[str] = set()
        command = ["kubectl", "get", "pods", "--namespace", namespace, "--watch"]
        command += ["--selector", f"tidework.dev/taskqueue={queue}", "--output", COLUMNS]
        self._command = command
        self._environment = cluster.environment
        self._thread = threading.Thread(target=self._follow, name=f"pods of {queue}")

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ended = self._process.poll()
        self._process.kill()
        self._process.wait(timeout=20)
        self._thread.join(timeout=20)
        if error is None:
            assert ended is None, f"the watch ended by itself with {ended}"
            assert self._failure is None, self._failure

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            try:
                for line in lines:
                    name, _, deleted = line.rstrip("\n").partition(" ")
                    self._see(name, is_deleted=bool(deleted))
            except Exception as error:
                self._failure = error

    def _see(self, name: str, *, is_deleted: bool) -> None:
        if not is_deleted:
            self._alive.add(name)
            self.peak = max(self.peak, len(self._alive))
        elif name not in self.deleted:
            self._alive.discard(name)
            holders = self._store.load(self._queue).busy_workers
            self.deleted[name] = sum(
                leases
                for incarnation, leases in holders.items()
                if incarnation.rpartition(".")[0] == name
            )
