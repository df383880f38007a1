"""What the tests of the client share."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from kubernetes.aio.client import Configuration

from tests.support.api_server import ApiServer, Asked, Respond
from tidework_operator.cluster import Object
from tidework_operator.kube import Kube

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: me, user: {{token: from-the-file}}}}]
"""


def kube_at(url: str, **given: Any) -> Kube:
    configuration = Configuration(host=url)
    configuration.api_key["BearerToken"] = "bearer secret-token"
    return Kube(configuration, **given)


def taskqueue(name: str = "emails", **spec: Any) -> Object:
    return {
        "apiVersion": "tidework.dev/v1alpha1",
        "kind": "TaskQueue",
        "metadata": {"namespace": "shop", "name": name},
        "spec": spec,
    }


def answer(*responses: tuple[int, Any] | web.Response) -> Respond:
    """Responds with these, one after the other."""
    left = list(responses)

    async def respond(_: web.Request) -> web.StreamResponse:
        found = left.pop(0)
        if isinstance(found, web.Response):
            return found
        return web.json_response(found[1], status=found[0])

    return respond


def last(server: ApiServer) -> Asked:
    """The last request."""
    return server.asked[-1]
