"""Settings of the operator, read from TIDEWORK_* variables before anything starts.

Credentials are no settings: they are files of the connections' folder, read anew when Redis
refuses them (see connections.py).
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode

from tidework.model.identity import is_dns_label, new_incarnation
from tidework.settings import Settings

IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _own_namespace() -> str:
    if found := os.environ.get("POD_NAMESPACE"):
        return found
    try:
        return IN_CLUSTER_NAMESPACE.read_text().strip()
    except OSError:
        return "default"


def _own_name() -> str:
    # A pod's name stays through restarts of its container: a leader that crashed leads on at once.
    return os.environ.get("POD_NAME") or new_incarnation(socket.gethostname())


class OperatorSettings(Settings):
    """What the operator needs to know. Names of files and objects, no secrets.

    redis_url:       the connection ``default`` where the folder has none, for runs outside of a
                     cluster; '' = only the folder counts
    namespaces:      those to watch, comma-separated; empty = all of the cluster
    connections:     a folder with one sub-folder per Redis connection
    lease_namespace, lease_name: the Lease that chooses the leader among the replicas
    identity:        this replica's name in it; by default POD_NAME
    state_dir:       where a leader notes that it leads, so that it may go on leading when it
                     restarts while the API server is away; None = it waits for the API server
    kubeconfig:      '' = the pod's service account, else what kubectl uses
    probe_port:      0 = any free port
    """

    redis_url: str = ""
    namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    connections: Path = Path("/etc/tidework/connections")
    lease_namespace: str = Field(default_factory=_own_namespace)
    lease_name: str = "tidework-operator"
    identity: str = Field(default_factory=_own_name, min_length=1, max_length=253)
    state_dir: Path | None = None
    kubeconfig: str = ""
    probe_host: str = "0.0.0.0"  # noqa: S104 - the kubelet asks from outside of the pod
    probe_port: int = Field(default=8080, ge=0, le=65535)

    @field_validator("redis_url")
    @classmethod
    def _redis_url(cls, found: str) -> str:
        return super()._redis_url(found) if found else ""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, found: object) -> object:
        if isinstance(found, str):
            return tuple(name.strip() for name in found.split(",") if name.strip())
        return found

    @field_validator("namespaces")
    @classmethod
    def _are_labels(cls, found: tuple[str, ...]) -> tuple[str, ...]:
        for name in found:
            if not is_dns_label(name):
                raise ValueError(
                    f"{name!r} is not the name of a namespace; separate names by commas"
                )
        return tuple(dict.fromkeys(found))

    @field_validator("lease_namespace", "lease_name")
    @classmethod
    def _is_label(cls, found: str) -> str:
        if not is_dns_label(found):
            raise ValueError("use a DNS label: a-z, 0-9 and '-', at most 63 characters")
        return found
