"""A cluster in memory: the Cluster protocol with what the operator relies on, no controllers.

resourceVersions and conflicts, generations, the status and scale subresources, server-side apply
with ownership of fields. Faults are planted by ``away`` and ``fail``. Objects go in and out as
copies. A test plays the controllers with ``put`` and ``remove``.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tidework.clock import Clock, SystemClock
from tidework_operator.cluster import (
    FIELD_MANAGER,
    SCALE_MANAGER,
    ClusterError,
    Kind,
    Object,
)

Key = tuple[Kind, str, str]
Path = tuple[str, ...]
Objects = list[Object]
Watcher = Callable[[Kind, str, Object], None]

WITH_STATUS = frozenset(
    {Kind.TASK_QUEUE, Kind.CRON_TASK, Kind.DEPLOYMENT, Kind.REPLICA_SET, Kind.POD}
)


class FakeCluster:
    """Implements Cluster.

    away:     True = connection refused
    calls:    "verb kind namespace/name[/subresource]" of every call, in order
    watchers: called with kind, ADDED | MODIFIED | DELETED and the object
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.away = False
        self.calls: list[str] = []
        self.watchers: list[Watcher] = []
        self.version = 100
        self._clock = clock or SystemClock()
        self._objects: dict[Key, Object] = {}
        self._owned: dict[Key, dict[str, set[Path]]] = {}
        self._faults: list[tuple[str, Kind | None, ClusterError, int]] = []

    def put(self, kind: Kind, found: Object) -> Object:
        """The object becomes what ``found`` says, its status included; what it became."""
        body = copy.deepcopy(found)
        namespace, name = _place(body)
        held = self._objects.get((kind, namespace, name))
        body.setdefault("apiVersion", kind.value.api_version)
        body.setdefault("kind", kind.value.kind)
        before = held or {}
        for field in ("uid", "creationTimestamp", "generation"):
            if field in before.get("metadata", {}):
                body["metadata"].setdefault(field, before["metadata"][field])
        return copy.deepcopy(self._store(kind, body, before))

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """The object is gone."""
        found = self._objects.pop((kind, namespace, name))
        self._owned.pop((kind, namespace, name), None)
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self._tell(kind, "DELETED", found)

    def objects(self, kind: Kind) -> Objects:
        """Copies of every object of the kind, by namespace and name."""
        keys = sorted(key[1:] for key in self._objects if key[0] is kind)
        return [copy.deepcopy(self._objects[kind, namespace, name]) for namespace, name in keys]

    def fail(
        self, verb: str, kind: Kind | None = None, *, status: int = 500, times: int = 1
    ) -> None:
        """The next calls of ``verb`` (for ``kind`` only, if given) are refused with ``status``."""
        error = ClusterError(verb, status, "planted by the test")
        self._faults.append((verb, kind, error, times))

    def called(self, verb: str, kind: Kind | None = None) -> Sequence[str]:
        """The calls of a verb, of a kind."""
        start = f"{verb} " if kind is None else f"{verb} {kind.value.plural} "
        return [call for call in self.calls if call.startswith(start)]

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        self._enter("get", kind, namespace, name)
        return copy.deepcopy(self._objects.get((kind, namespace, name)))

    async def list(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Objects:
        self._enter("list", kind, namespace or "", "")
        wanted = (labels or {}).items()
        return [
            found
            for found in self.objects(kind)
            if namespace in (None, found["metadata"]["namespace"])
            and wanted <= (found["metadata"].get("labels") or {}).items()
        ]

    async def create(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        namespace, name = _place(body)
        self._enter("create", kind, namespace, name)
        if (kind, namespace, name) in self._objects:
            raise ClusterError(f"POST {kind.value.plural}", 409, f'"{name}" already exists')
        new = copy.deepcopy(body)
        if kind in WITH_STATUS:
            new.pop("status", None)
        return copy.deepcopy(self._store(kind, new, {}))

    async def apply(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        namespace, name = _place(body)
        self._enter("apply", kind, namespace, name)
        key = (kind, namespace, name)
        held = self._objects.get(key)
        new = copy.deepcopy(held) if held else _head(kind, body)
        applied = {part: value for part, value in body.items() if part != "status"}
        owned = self._owned.setdefault(key, {})
        mine = set(_leaves(applied))
        others = set().union(*(paths for owner, paths in owned.items() if owner != manager))
        for path in owned.get(manager, set()) - mine - others:
            _drop(new, path)
        for other in owned:
            owned[other] -= mine  # forced: they are ours from now on
        owned[manager] = mine
        return copy.deepcopy(self._store(kind, _merge(new, applied), held or {}))

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Object,
        *,
        subresource: str = "",
        manager: str = FIELD_MANAGER,
    ) -> Object:
        self._enter("patch", kind, namespace, name, subresource)
        held = self._held("PATCH", kind, namespace, name)
        self._check_version("PATCH", held, patch)
        if subresource == "scale":
            return self._scale(kind, held, patch, manager)
        if subresource:
            part = {subresource: patch.get(subresource, {})}
        else:
            hidden = {"status"} if kind in WITH_STATUS else set()
            part = {name: value for name, value in patch.items() if name not in hidden}
        return copy.deepcopy(self._store(kind, _merge_patch(held, part), held))

    async def replace(self, kind: Kind, body: Object) -> Object:
        namespace, name = _place(body)
        self._enter("replace", kind, namespace, name)
        held = self._held("PUT", kind, namespace, name)
        self._check_version("PUT", held, body)
        new = copy.deepcopy(body)
        for field in ("uid", "creationTimestamp", "generation"):
            new["metadata"][field] = held["metadata"][field]
        if kind in WITH_STATUS:
            new.pop("status", None)
            if "status" in held:
                new["status"] = copy.deepcopy(held["status"])
        return copy.deepcopy(self._store(kind, new, held))

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        self._enter("delete", kind, namespace, name)
        if (kind, namespace, name) in self._objects:
            self.remove(kind, namespace, name)

    def _enter(
        self, verb: str, kind: Kind, namespace: str, name: str, subresource: str = ""
    ) -> None:
        place = "/".join(part for part in (namespace, name, subresource) if part)
        call = f"{verb} {kind.value.plural} {place}"
        self.calls.append(call)
        if self.away:
            raise ClusterError(call, 0, "connection refused")
        for i, (what, whose, error, times) in enumerate(self._faults):
            if what == verb and whose in (None, kind):
                self._faults[i : i + 1] = [(what, whose, error, times - 1)] if times > 1 else []
                raise error

    def _held(self, doing: str, kind: Kind, namespace: str, name: str) -> Object:
        held = self._objects.get((kind, namespace, name))
        if held is None:
            raise ClusterError(f"{doing} {kind.value.plural}", 404, f'"{name}" not found')
        return held

    def _check_version(self, doing: str, held: Object, body: Object) -> None:
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != held["metadata"]["resourceVersion"]:
            raise ClusterError(doing, 409, "the object has been modified")

    def _scale(self, kind: Kind, held: Object, patch: Object, manager: str) -> Object:
        replicas = patch["spec"]["replicas"]
        new = copy.deepcopy(held)
        new["spec"]["replicas"] = replicas
        namespace, name = _place(new)
        for paths in self._owned.get((kind, namespace, name), {}).values():
            paths.discard(("spec", "replicas"))
        if manager != SCALE_MANAGER:
            raise AssertionError(f"replicas belong to {SCALE_MANAGER}, not to {manager}")
        stored = self._store(kind, new, held)
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": copy.deepcopy(stored["metadata"]),
            "spec": {"replicas": replicas},
            "status": {"replicas": stored.get("status", {}).get("replicas", 0)},
        }

    def _store(self, kind: Kind, new: Object, before: Object) -> Object:
        namespace, name = _place(new)
        metadata = new["metadata"]
        if not before:
            metadata.setdefault("uid", str(uuid.uuid4()))
            now = self._clock.now().astimezone(UTC)
            metadata.setdefault("creationTimestamp", _seconds(now))
            metadata.setdefault("generation", 1)
        elif _without_version(new) == _without_version(before):
            return before
        elif new.get("spec") != before.get("spec"):
            metadata["generation"] = before["metadata"].get("generation", 0) + 1
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        self._objects[kind, namespace, name] = new
        self._tell(kind, "MODIFIED" if before else "ADDED", new)
        return new

    def _tell(self, kind: Kind, change: str, found: Object) -> None:
        for watcher in self.watchers:
            watcher(kind, change, copy.deepcopy(found))


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _head(kind: Kind, body: Object) -> Object:
    namespace, name = _place(body)
    head = {"apiVersion": kind.value.api_version, "kind": kind.value.kind}
    return {**head, "metadata": {"namespace": namespace, "name": name}}


def _seconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _without_version(found: Object) -> Object:
    metadata = {k: v for k, v in found["metadata"].items() if k != "resourceVersion"}
    return {**found, "metadata": metadata}


def _leaves(found: Any, above: Path = ()) -> Iterator[Path]:
    """Paths of everything that is no object: a list counts as one value."""
    if isinstance(found, dict) and found:
        for name, value in found.items():
            yield from _leaves(value, (*above, name))
    elif above not in {("apiVersion",), ("kind",)}:
        yield above


def _merge(into: Object, applied: Object) -> Object:
    for name, value in applied.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = copy.deepcopy(value)
    return into


def _drop(found: Any, path: Path) -> None:
    above: list[tuple[Object, str]] = []
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return
        above.append((found, name))
        found = found[name]
    for holder, name in reversed(above):
        del holder[name]
        if holder:
            return


def _merge_patch(held: Object, patch: Object) -> Object:
    """RFC 7396."""
    new = dict(held)
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        elif isinstance(value, dict):
            before = new.get(name)
            new[name] = _merge_patch(before if isinstance(before, dict) else {}, value)
        else:
            new[name] = copy.deepcopy(value)
    return copy.deepcopy(new)
