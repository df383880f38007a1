"""Callers of the HTTP API by their Kubernetes tokens: RBAC alone says who may do what.

The API server says whose a token is (TokenReview), and what its owner may do in the namespace of
the request (SubjectAccessReview on taskqueues): who may list them is a viewer, who may update them
an operator, who may delete them an admin. What it said counts for KEEP; a refusal as well, so that
a wrong token does not keep it busy. If it cannot be asked, nobody is let in.

Found by the entry point ``kubernetes`` of the group ``tidework.access``.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from starlette.requests import HTTPConnection

from tidework.access.caller import Caller, Permission
from tidework.clock import Clock
from tidework.errors import UnauthenticatedError
from tidework.model.identity import is_dns_label
from tidework_operator.cluster import GROUP, ClusterError, Object
from tidework_operator.kube import connect

KEEP = timedelta(seconds=30)
MOST_KEPT = 1000
VERBS = {Permission.ADMIN: "delete", Permission.OPERATOR: "update", Permission.VIEWER: "list"}
"""On taskqueues of the namespace; the first that is allowed counts."""


class Reviews(Protocol):
    """What is asked of the API server."""

    async def review(self, kind: str, spec: Object) -> Object:
        """The status of a TokenReview or SubjectAccessReview. Raises ClusterError."""


@dataclass(frozen=True, slots=True)
class _Kept:
    caller: Caller | None
    until: datetime


class KubernetesTokens:
    """A Way. namespace: that of a request which names none"""

    def __init__(self, reviews: Reviews | None, namespace: str, clock: Clock) -> None:
        self._reviews = reviews
        self._namespace = namespace
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    async def recognize(self, request: HTTPConnection) -> Caller | None:
        """The owner of the token; None without one that the API server knows."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        namespace = request.query_params.get("namespace") or self._namespace
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not is_dns_label(namespace):
            return None
        key = (hashlib.sha256(token.encode()).hexdigest(), namespace)
        now = self._clock.now()
        kept = self._kept.get(key)
        if kept is not None and kept.until > now:
            return kept.caller
        try:
            caller = await self._ask(token, namespace)
        except ClusterError as error:
            raise UnauthenticatedError(
                f"the API server cannot say whose the token is: {error}"
            ) from error
        self._kept[key] = _Kept(caller, now + KEEP)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return caller

    async def _ask(self, token: str, namespace: str) -> Caller | None:
        if self._reviews is None:
            self._reviews = await connect()
        reviews = self._reviews
        status = await reviews.review("TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        answers = await asyncio.gather(
            *[
                reviews.review("SubjectAccessReview", _access(user, verb, namespace))
                for verb in VERBS.values()
            ]
        )
        name = str(user["username"])
        for permission, answer in zip(VERBS, answers, strict=True):
            if answer.get("allowed") is True:
                return Caller(name, permission, frozenset({namespace}), "kubernetes")
        return Caller(name, Permission.VIEWER, frozenset(), "kubernetes")


def _access(user: dict[str, Any], verb: str, namespace: str) -> Object:
    who = {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
    return {
        "user": user["username"],
        **who,
        "resourceAttributes": {
            "group": GROUP,
            "resource": "taskqueues",
            "verb": verb,
            "namespace": namespace,
        },
    }


def way(namespace: str, clock: Clock) -> KubernetesTokens:
    """The entry point. The cluster around this pod is asked; no request is made yet."""
    return KubernetesTokens(None, namespace, clock)
