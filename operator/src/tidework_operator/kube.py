"""The API server over the official client: the only importer of ``kubernetes``.

Plain JSON both ways: no models, whose deserialization costs more than the requests. Invariants:
each request is made once and is bounded in time, never resent silently; every failure is a
ClusterError that says what was done and what the API server answered, status 0 without an answer.
Lists are consistent reads: since Kubernetes 1.31 its cache serves them, and a stale list of pods
(resourceVersion=0) could make the autoscaler count pods that are gone.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from tidework.errors import ConfigurationError
from tidework_operator.cluster import FIELD_MANAGER, ClusterError, Kind, Object

TIMEOUT = timedelta(seconds=20)
CONNECT_TIMEOUT = timedelta(seconds=5)
PAGE = 500
"""Objects per list request, as client-go has it."""

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"

_NOT_FOUND = 404
_GONE = 410
_LONGEST_REASON = 1000

Query = list[tuple[str, str]]


async def connect(kubeconfig: str = "") -> Kube:
    """The cluster around this pod, or the one that kubectl would use. No request is made.

    kubeconfig: its path; '' = the service account of the pod if there is one, else what
                KUBECONFIG or ~/.kube/config say

    Raises ConfigurationError.
    """
    configuration = Configuration()
    try:
        if kubeconfig:
            await load_kube_config(kubeconfig, client_configuration=configuration)
        else:
            await _load_usual(configuration)
    except (ConfigException, OSError, ValueError) as error:
        where = kubeconfig or "KUBECONFIG or ~/.kube/config"
        raise ConfigurationError(
            f"no cluster is configured ({where}: {error}); run inside a pod with a service "
            "account, or name a kubeconfig: TIDEWORK_KUBECONFIG"
        ) from error
    return Kube(configuration)


async def _load_usual(configuration: Configuration) -> None:
    try:
        load_incluster_config(client_configuration=configuration)
    except ConfigException:
        await load_kube_config(client_configuration=configuration)


class Kube:
    """Implements Cluster."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        timeout: timedelta = TIMEOUT,
        page: int = PAGE,
        version: str = "",
    ) -> None:
        # Someone who resends must know it: our loops do, with a fresh look at the cluster.
        configuration.retries = None
        self.address: str = configuration.host
        self.requests = 0
        self.failures = 0
        self._page = page
        self._client = ApiClient(configuration)
        self._client.user_agent = f"tidework-operator/{version}" if version else "tidework-operator"
        self._timeout = aiohttp.ClientTimeout(
            total=timeout.total_seconds(),
            sock_connect=min(CONNECT_TIMEOUT, timeout).total_seconds(),
        )

    async def close(self) -> None:
        """Give back all connections."""
        await self._client.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        try:
            return await self._ask("GET", kind, namespace, name)
        except ClusterError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    async def list(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        query: Query = []
        if labels:
            selector = ",".join(f"{name}={value}" for name, value in labels.items())
            query.append(("labelSelector", selector))
        try:
            return await self._pages(kind, namespace, [*query, ("limit", str(self._page))])
        except ClusterError as error:
            if error.status != _GONE:
                raise
            # The snapshot behind the pages has expired while we read: take it in one piece.
            return await self._pages(kind, namespace, query)

    async def create(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        namespace, name = _place(body)
        return await self._ask(
            "POST", kind, namespace, query=[("fieldManager", manager)], body=body, about=name
        )

    async def apply(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        namespace, name = _place(body)
        head = {"apiVersion": kind.value.api_version, "kind": kind.value.kind}
        return await self._ask(
            "PATCH",
            kind,
            namespace,
            name,
            query=[("fieldManager", manager), ("force", "true")],
            body=head | body,
            content_type=_APPLY,
        )

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
        return await self._ask(
            "PATCH",
            kind,
            namespace,
            name,
            subresource,
            query=[("fieldManager", manager)],
            body=patch,
            content_type=_MERGE,
        )

    async def replace(self, kind: Kind, body: Object) -> Object:
        namespace, name = _place(body)
        query = [("fieldManager", FIELD_MANAGER)]
        return await self._ask("PUT", kind, namespace, name, query=query, body=body)

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        try:
            await self._ask(
                "DELETE", kind, namespace, name, body={"propagationPolicy": "Background"}
            )
        except ClusterError as error:
            if error.status != _NOT_FOUND:
                raise

    async def _pages(self, kind: Kind, namespace: str | None, query: Query) -> list[Object]:
        found: list[Object] = []
        token: str | None = ""
        while token is not None:
            onward = [("continue", token)] if token else []
            page = await self._ask("GET", kind, namespace, query=[*query, *onward])
            head = {"apiVersion": kind.value.api_version, "kind": kind.value.kind}
            found += [head | item for item in page.get("items") or ()]
            token = page.get("metadata", {}).get("continue") or None
        return found

    async def _ask(
        self,
        method: str,
        kind: Kind,
        namespace: str | None,
        name: str = "",
        subresource: str = "",
        *,
        query: Query | None = None,
        body: Object | None = None,
        content_type: str = _JSON,
        about: str = "",
    ) -> Object:
        """One request. Raises ClusterError."""
        resource = kind.value
        scope = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
        parts = [part for part in (quote(name, safe=""), subresource) if part]
        path = "/".join((f"/{resource.path}/{scope}{resource.plural}", *parts))
        shown = "/".join(part for part in (namespace, name or about, subresource) if part)
        doing = f"{method} {resource.plural} {shown}".rstrip()
        self.requests += 1
        try:
            answer = await self._send(doing, method, path, query or [], body, content_type)
        except ClusterError:
            self.failures += 1
            raise
        return answer

    async def _send(
        self,
        doing: str,
        method: str,
        path: str,
        query: Query,
        body: Object | None,
        content_type: str,
    ) -> Object:
        headers = {"Accept": _JSON}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            request = await self._client.param_serialize(
                method,
                path,
                query_params=query,
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(*request, _request_timeout=self._timeout)
            text = await answer.read()
        except TimeoutError as error:
            raise ClusterError(doing, 0, f"{self.address} did not answer in time") from error
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            reason = str(error) or type(error).__name__
            raise ClusterError(doing, 0, f"{self.address} cannot be reached: {reason}") from error
        except (ApiException, ConfigException) as error:
            # Reading the token anew may fail as well.
            raise ClusterError(doing, 0, str(error)) from error
        return _read(doing, answer.status, text)


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _read(doing: str, status: int, text: bytes) -> Object:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        said = text.decode(errors="replace").strip()[:_LONGEST_REASON]
        raise ClusterError(doing, status, said or "an empty answer") from error
    if not isinstance(found, dict):
        raise ClusterError(doing, status, f"no object in the answer: {found!r}"[:_LONGEST_REASON])
    if not 200 <= status <= 299:
        reason = found.get("message") or found.get("reason") or "no reason given"
        raise ClusterError(doing, status, str(reason)[:_LONGEST_REASON])
    return found
