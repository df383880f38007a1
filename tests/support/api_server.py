"""A FakeCluster behind HTTP, as far as the operator's two clients (ours, and kopf's) use it.

Discovery, the verbs, pages, watches. What was asked is kept for tests to look at.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.support.fake_cluster import FakeCluster
from tidework_operator.cluster import ClusterError, Kind, Object

Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]

BY_PATH = {(kind.value.path, kind.value.plural): kind for kind in Kind}
CLUSTER_KINDS = {
    "api/v1": [("namespaces", "Namespace")],
    "apis/apiextensions.k8s.io/v1": [("customresourcedefinitions", "CustomResourceDefinition")],
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(slots=True)
class _Stream:
    kind: Kind
    namespace: str | None
    changes: asyncio.Queue[dict[str, Any] | None] = field(default_factory=asyncio.Queue)

    def tell(self, kind: Kind, change: str, found: Object) -> None:
        """Hand on what it watches."""
        if self.kind is kind and self.namespace in (None, found["metadata"]["namespace"]):
            self.changes.put_nowait({"type": change, "object": found})


class ApiServer:
    """An async context manager. ``url`` is its address.

    respond: answers every request instead, if set
    deaf:    True = watches are told nothing
    """

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.url = ""
        self.asked: list[Asked] = []
        self.respond: Respond | None = None
        self.deaf = False
        self._streams: list[_Stream] = []
        self._history: list[tuple[Kind, str, Object]] = []
        self._runner: web.AppRunner | None = None
        cluster.watchers.append(self._tell)

    @property
    def watching(self) -> int:
        """Open watches."""
        return len(self._streams)

    def end_watches(self, error: Object | None = None) -> None:
        """Close every watch, after an ERROR event if one is given."""
        for stream in self._streams:
            if error is not None:
                stream.changes.put_nowait({"type": "ERROR", "object": error})
            stream.changes.put_nowait(None)

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_watches()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        asked = Asked(
            request.method,
            request.path,
            dict(request.query),
            request.headers,
            json.loads(text) if text else None,
        )
        self.asked.append(asked)
        if self.respond is not None:
            return await self.respond(request)
        found = _discovery(request.path.strip("/"))
        if found is not None:
            return web.json_response(found)
        try:
            return await self._serve(request, asked)
        except ClusterError as error:
            return refusal(error.status or 503, error.reason)

    async def _serve(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        kind, namespace, name, subresource = _target(asked.path)
        if asked.method == "GET" and not name:
            if asked.query.get("watch") == "true":
                return await self._watch(request, kind, namespace)
            return web.json_response(await self._page(kind, namespace, asked.query))
        cluster, body = self.cluster, asked.body
        manager = asked.query.get("fieldManager", "")
        match asked.method:
            case "GET":
                held = await cluster.get(kind, namespace or "", name)
                if held is None:
                    return refusal(404, f'{kind.value.plural} "{name}" not found')
                found = held
            case "POST":
                found = await cluster.create(kind, body, manager=manager)
            case "PUT":
                found = await cluster.replace(kind, body)
            case "PATCH" if "apply" in asked.headers["Content-Type"]:
                found = await cluster.apply(kind, body, manager=manager)
            case "PATCH":
                found = await cluster.patch(
                    kind, namespace or "", name, body, subresource=subresource, manager=manager
                )
            case "DELETE":
                if await cluster.get(kind, namespace or "", name) is None:
                    return refusal(404, f'{kind.value.plural} "{name}" not found')
                await cluster.delete(kind, namespace or "", name)
                found = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
            case _:
                return refusal(405, "method not allowed")
        return web.json_response(found, status=201 if asked.method == "POST" else 200)

    async def _page(self, kind: Kind, namespace: str | None, query: dict[str, str]) -> Object:
        pairs = [pair for pair in query.get("labelSelector", "").split(",") if pair]
        labels = dict(pair.split("=", 1) for pair in pairs)
        found = await self.cluster.list(kind, namespace=namespace, labels=labels)
        start = int(query.get("continue", "0"))
        end = start + int(query.get("limit", "0")) if "limit" in query else len(found)
        # A list of a built-in kind leaves the head of its items away.
        items = [
            {k: v for k, v in each.items() if k not in ("apiVersion", "kind")}
            for each in found[start:end]
        ]
        metadata = {"resourceVersion": str(self.cluster.version)}
        if end < len(found):
            metadata["continue"] = str(end)
        head = {"apiVersion": kind.value.api_version, "kind": f"{kind.value.kind}List"}
        return {**head, "metadata": metadata, "items": items}

    async def _watch(
        self, request: web.Request, kind: Kind, namespace: str | None
    ) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        stream = _Stream(kind, namespace)
        since = int(request.query["resourceVersion"])
        for known, how, found in self._history:
            if int(found["metadata"]["resourceVersion"]) > since:
                stream.tell(known, how, found)
        self._streams.append(stream)
        try:
            while (change := await stream.changes.get()) is not None:
                await response.write(json.dumps(change).encode() + b"\n")
        finally:
            self._streams.remove(stream)
        return response

    def _tell(self, kind: Kind, change: str, found: Object) -> None:
        if self.deaf:
            return
        self._history.append((kind, change, found))
        for stream in self._streams:
            stream.tell(kind, change, found)


def refusal(status: int, message: str) -> web.Response:
    """What the API server answers to what it does not do."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}
    return web.json_response(body | {"code": status}, status=status)


def _target(path: str) -> tuple[Kind, str | None, str, str]:
    parts = path.strip("/").split("/")
    length = 2 if parts[0] == "api" else 3
    group, rest = "/".join(parts[:length]), parts[length:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, rest[0]))
    if kind is None:
        raise ClusterError(path, 404, "the server could not find the requested resource")
    return kind, namespace, "".join(rest[1:2]), "".join(rest[2:3])


def _discovery(path: str) -> Object | None:
    paths = {kind.value.path for kind in Kind} | CLUSTER_KINDS.keys()
    if path == "api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "apis":
        groups = []
        for each in sorted(paths - {"api/v1"}):
            _, name, version = each.split("/")
            one = {"groupVersion": f"{name}/{version}", "version": version}
            groups.append({"name": name, "versions": [one], "preferredVersion": one})
        return {"kind": "APIGroupList", "groups": groups}
    if path not in paths:
        return None
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    found = [(kind.value.plural, kind.value.kind, True) for kind in Kind if kind.value.path == path]
    found += [(plural, kind, False) for plural, kind in CLUSTER_KINDS.get(path, [])]
    resources = [
        {
            "name": plural,
            "singularName": kind.lower(),
            "kind": kind,
            "namespaced": namespaced,
            "verbs": verbs,
        }
        for plural, kind, namespaced in found
    ]
    return {"kind": "APIResourceList", "groupVersion": path, "resources": resources}
