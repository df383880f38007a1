"""The API server over the official client: the only importer of ``kubernetes``.

Plain JSON both ways: no models, whose deserialization costs more than the requests. Invariants:
each request is made once and is bounded in time, never resent silently; every failure is a
ClusterError that says what was done and what the API server answered, status 0 without an answer.
Lists are consistent reads: since Kubernetes 1.31 its cache serves them, and a stale list of pods
(resourceVersion=0) could make the autoscaler count pods that are gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import (
    ConfigException,
    list_kube_config_contexts,
    load_incluster_config,
    load_kube_config,
)

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
Objects = list[Object]


@dataclass(frozen=True, slots=True)
class _Target:
    """What a request is about: all objects of a kind, one of them, or a part of one."""

    kind: Kind
    namespace: str | None
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        resource = self.kind.value
        scope = f"namespaces/{quote(self.namespace, safe='')}/" if self.namespace else ""
        parts = [part for part in (quote(self.name, safe=""), self.subresource) if part]
        return "/".join((f"/{resource.path}/{scope}{resource.plural}", *parts))

    def __str__(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name, self.subresource) if part)
        return f"{self.kind.value.plural} {place}".rstrip()


@dataclass(frozen=True, slots=True)
class _Review:
    """A question about a caller of ours. It is answered, and no object comes of it."""

    kind: str

    @property
    def api_version(self) -> str:
        token = self.kind == "TokenReview"
        return "authentication.k8s.io/v1" if token else "authorization.k8s.io/v1"

    @property
    def path(self) -> str:
        return f"/apis/{self.api_version}/{self.kind.lower()}s"

    def __str__(self) -> str:
        return f"{self.kind.lower()}s"


async def connect(kubeconfig: str = "", *, context: str = "", version: str = "") -> Kube:
    """The cluster around this pod, or the one that kubectl would use. No request is made.

    kubeconfig: its path; '' = the service account of the pod if there is one, else what
                KUBECONFIG or ~/.kube/config say
    context:    of the kubeconfig; '' = its current one
    version:    of the operator, for the API server's audit log

    Raises ConfigurationError.
    """
    configuration = Configuration()
    try:
        if kubeconfig or context:
            await load_kube_config(  # type: ignore[no-untyped-call]
                kubeconfig or None, context or None, client_configuration=configuration
            )
        else:
            await _load_usual(configuration)
    except Exception as error:
        # The loader lets through whatever a malformed file makes it stumble over.
        where = kubeconfig or "KUBECONFIG or ~/.kube/config"
        raise ConfigurationError(
            f"no cluster is configured ({where}: {error}); run inside a pod with a service "
            "account, or name a kubeconfig: TIDEWORK_KUBECONFIG"
        ) from error
    return Kube(configuration, version=version)


def namespace_of(kubeconfig: str = "", context: str = "") -> str:
    """The namespace that kubectl would use: of the context, else ``default``."""
    try:
        contexts, current = list_kube_config_contexts(kubeconfig or None)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError):
        return "default"
    chosen = next((found for found in contexts if found["name"] == context), current)
    return str(chosen["context"].get("namespace") or "default")


async def _load_usual(configuration: Configuration) -> None:
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        await load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]


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
        self.address: str = configuration.host
        self._configuration = configuration
        self.requests = 0
        self.failures = 0
        self._page = page
        self._client = ApiClient(configuration)
        self._client.user_agent = f"tidework-operator/{version}" if version else "tidework-operator"
        self._timeout = aiohttp.ClientTimeout(
            total=timeout.total_seconds(),
            sock_connect=min(CONNECT_TIMEOUT, timeout).total_seconds(),
        )

    async def access(self) -> dict[str, Any]:
        """How another client gets in, in the words of kopf.ConnectionInfo; a fresh token.

        Raises ClusterError if there are no credentials.
        """
        found = self._configuration
        try:
            header = await found.get_api_key_with_prefix("BearerToken", alias="authorization")
        except ConfigException as error:
            raise ClusterError("read the token", 0, f"no credentials: {error}") from error
        return {
            "server": self.address,
            "ca_path": found.ssl_ca_cert,
            "insecure": not found.verify_ssl,
            "username": found.username or None,
            "password": found.password or None,
            "token": (header or "").partition(" ")[2] or None,
            "certificate_path": found.cert_file,
            "private_key_path": found.key_file,
            "proxy_url": found.proxy,
        }

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        try:
            return await self._ask("GET", _Target(kind, namespace, name))
        except ClusterError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    async def list(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Objects:
        query: Query = []
        if labels:
            selector = ",".join(f"{name}={value}" for name, value in labels.items())
            query.append(("labelSelector", selector))
        target = _Target(kind, namespace)
        try:
            return await self._pages(target, [*query, ("limit", str(self._page))])
        except ClusterError as error:
            if error.status != _GONE:
                raise
            # The snapshot behind the pages has expired while we read: take it in one piece.
            return await self._pages(target, query)

    async def create(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        namespace, _ = _place(body)
        query = [("fieldManager", manager)]
        return await self._ask("POST", _Target(kind, namespace), query, body)

    async def apply(self, kind: Kind, body: Object, *, manager: str = FIELD_MANAGER) -> Object:
        query = [("fieldManager", manager), ("force", "true")]
        whole = _head(kind) | body
        return await self._ask("PATCH", _Target(kind, *_place(body)), query, whole, _APPLY)

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
        target = _Target(kind, namespace, name, subresource)
        return await self._ask("PATCH", target, [("fieldManager", manager)], patch, _MERGE)

    async def replace(self, kind: Kind, body: Object) -> Object:
        query = [("fieldManager", FIELD_MANAGER)]
        return await self._ask("PUT", _Target(kind, *_place(body)), query, body)

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        options: Object = {"propagationPolicy": "Background"}
        try:
            await self._ask("DELETE", _Target(kind, namespace, name), [], options)
        except ClusterError as error:
            if error.status != _NOT_FOUND:
                raise

    async def review(self, kind: str, spec: Object) -> Object:
        """The status of a TokenReview or SubjectAccessReview. Raises ClusterError."""
        target = _Review(kind)
        body = {"apiVersion": target.api_version, "kind": kind, "spec": spec}
        return dict((await self._ask("POST", target, body=body)).get("status") or {})

    async def _pages(self, target: _Target, query: Query) -> Objects:
        found: Objects = []
        token: str | None = ""
        while token is not None:
            onward = [("continue", token)] if token else []
            page = await self._ask("GET", target, [*query, *onward])
            found += [_head(target.kind) | item for item in page.get("items") or ()]
            token = page.get("metadata", {}).get("continue") or None
        return found

    async def _ask(
        self,
        method: str,
        target: _Target | _Review,
        query: Query | None = None,
        body: Object | None = None,
        content_type: str = _JSON,
    ) -> Object:
        """One request. Raises ClusterError."""
        doing = f"{method} {target}"
        self.requests += 1
        try:
            status, text = await self._send(method, target, query or [], body, content_type)
            return _read(doing, status, text)
        except ClusterError:
            self.failures += 1
            raise
        except TimeoutError as error:
            self.failures += 1
            raise ClusterError(doing, 0, f"{self.address} did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            self.failures += 1
            reason = str(error) or type(error).__name__
            raise ClusterError(doing, 0, f"{self.address} cannot be reached: {reason}") from error
        except ConfigException as error:
            # The token is read anew once a minute.
            self.failures += 1
            raise ClusterError(doing, 0, f"no credentials: {error}") from error

    async def _send(
        self,
        method: str,
        target: _Target | _Review,
        query: Query,
        body: Object | None,
        content_type: str,
    ) -> tuple[int, bytes]:
        headers = {"Accept": _JSON}
        if body is not None:
            headers["Content-Type"] = content_type
        request = await self._client.param_serialize(
            method,
            target.path,
            query_params=query,
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = await self._client.call_api(*request, _request_timeout=self._timeout)
        text: bytes = await answer.read()  # type: ignore[no-untyped-call]
        return answer.status, text


def _head(kind: Kind) -> Object:
    return {"apiVersion": kind.value.api_version, "kind": kind.value.kind}


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
