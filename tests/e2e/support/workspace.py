"""A namespace with workers: documents applied, and what the cluster says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.waiting import wait_until
from tests.e2e.support.documents import Document
from tests.e2e.support.installation import Installation
from tests.e2e.support.store import Store, open_store

Object = dict[str, Any]


class Workspace:
    """`store` reaches the namespace's queues in Redis."""

    def __init__(self, cluster: Cluster, namespace: str, store: Store) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.store = store

    def kubectl(self, *arguments: str, input: str | None = None, within: float = 60) -> str:  # noqa: A002
        """In this namespace. Raises CommandError."""
        here = ("--namespace", self.namespace)
        return self.cluster.kubectl(*arguments, *here, input=input, within=within)

    def apply(self, *documents: Document) -> None:
        """As a user does. Raises CommandError with what the API server says against it."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        self.kubectl("apply", "--filename", "-", input=text)

    def patch(self, name: str, patch: Object) -> None:
        """Change a TaskQueue."""
        self.kubectl("patch", "taskqueue", name, "--type", "merge", "--patch", json.dumps(patch))

    def get(self, kind: str, name: str) -> Object:
        """One object."""
        found: Object = self.cluster.kubectl_json("get", kind, name, "--namespace", self.namespace)
        return found

    def items(self, kinds: str, *, queue: str | None = None) -> list[Object]:
        """Objects of these kinds; of one TaskQueue alone."""
        selector = () if queue is None else ("--selector", f"tidework.dev/taskqueue={queue}")
        here = ("--namespace", self.namespace)
        found: list[Object] = self.cluster.kubectl_json("get", kinds, *selector, *here)["items"]
        return found

    def pods(self, queue: str) -> list[Object]:
        """The workers of a TaskQueue, without those that are about to go."""
        found = self.items("pods", queue=queue)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready_pods(self, queue: str) -> list[Object]:
        """Those that are able to claim."""
        return [pod for pod in self.pods(queue) if _condition(pod, "Ready").get("status") == "True"]

    def condition(self, kind: str, name: str, type_: str) -> Object:
        """As it is now, {} if there is none; one about an older spec does not count."""
        found = self.get(kind, name)
        condition = _condition(found, type_)
        if condition.get("observedGeneration") != found["metadata"]["generation"]:
            return {}
        return condition

    def wait_for(self, holds: Callable[[], Any], describe: str, *, within: float = 60) -> Any:
        """See `wait_until`; the namespace is named too."""
        return wait_until(holds, within=within, describe=f"{self.namespace}: {describe}")

    def wait_for_condition(
        self, kind: str, name: str, type_: str, status: str, *, reason: str, within: float = 60
    ) -> Object:
        """Until it is as it should be; returns it."""

        def holds() -> Object:
            seen = self.condition(kind, name, type_)
            assert (seen.get("status"), seen.get("reason")) == (status, reason), seen
            return seen

        found: Object = self.wait_for(
            holds, f"{kind} {name}: {type_} is {status}, {reason}", within=within
        )
        return found

    def wait_for_condition_true(self, kind: str, name: str, type_: str = "Ready") -> None:
        """Whatever the reason."""
        self.wait_for(
            lambda: self.condition(kind, name, type_).get("status") == "True",
            f"{kind} {name}: {type_} is true",
        )

    def wait_for_end(self, queue: str, *, within: float) -> None:
        """Until every job of the queue has ended."""
        self.wait_for(
            lambda: self.store.stats(queue).unfinished == 0,
            f"every job of {queue} has ended",
            within=within,
        )

    def wait_for_pods(self, queue: str, count: int, *, within: float = 60) -> None:
        """Until the queue has so many ready workers and no other pod."""

        def holds() -> bool:
            names = [pod["metadata"]["name"] for pod in self.items("pods", queue=queue)]
            ready = self.ready_pods(queue)
            assert len(names) == count == len(ready), f"{names}, of which {len(ready)} are ready"
            return True

        self.wait_for(holds, f"{queue} has {count} ready workers", within=within)


@contextmanager
def open_workspace(installation: Installation, namespace: str) -> Iterator[Workspace]:
    """Workers of the namespace may use the installation's Redis."""
    installation.admit(namespace)
    with open_store(installation, namespace) as store:
        yield Workspace(installation.cluster, namespace, store)


def _condition(found: Object, type_: str) -> Object:
    for condition in found.get("status", {}).get("conditions", []):
        if condition["type"] == type_:
            named: Object = condition
            return named
    return {}
