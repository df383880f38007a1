"""Parts of a pod that are Kubernetes' own objects: what is known of their fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from tidework.manifests.open_fields import OpenFields

_NAME = {"name": 63}
OWN_VOLUMES = "tidework-"
"""How the names of the operator's volumes begin."""

Toleration = Annotated[
    dict[str, Any],
    OpenFields(
        {"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}
    ),
]
Spread = Annotated[
    dict[str, Any],
    OpenFields(
        {"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "minDomains": int},
        required=("maxSkew", "topologyKey", "whenUnsatisfiable"),
    ),
]
Volume = Annotated[dict[str, Any], OpenFields({"name": str}, required=("name",), longest=_NAME)]
VolumeMount = Annotated[
    dict[str, Any],
    OpenFields(
        {"name": str, "mountPath": str, "readOnly": bool, "subPath": str, "subPathExpr": str},
        required=("name", "mountPath"),
        longest={**_NAME, "mountPath": 1024},
    ),
]
Container = Annotated[
    dict[str, Any],
    OpenFields({"name": str, "image": str}, required=("name",), longest=_NAME),
]
EnvSource = Annotated[dict[str, Any], OpenFields({"prefix": str})]
SecurityContext = Annotated[
    dict[str, Any],
    OpenFields(
        {
            "runAsNonRoot": bool,
            "runAsUser": int,
            "runAsGroup": int,
            "fsGroup": int,
            "fsGroupChangePolicy": str,
        }
    ),
]
ContainerSecurityContext = Annotated[
    dict[str, Any],
    OpenFields(
        {
            "allowPrivilegeEscalation": bool,
            "privileged": bool,
            "readOnlyRootFilesystem": bool,
            "runAsNonRoot": bool,
            "runAsUser": int,
            "runAsGroup": int,
        }
    ),
]

NO_SUCH_VOLUME = "a mount names a volume that is not there; add it to volumes, or remove the mount"
OWN_VOLUME = f"names that begin with {OWN_VOLUMES} are the operator's; use another name"

Faults = list[tuple[str | tuple[str, ...], str]]


def volume_faults(
    volumes: Sequence[Mapping[str, Any]], mounts: Sequence[Mapping[str, Any]]
) -> Faults:
    """What keeps volumes and the mounts of the worker's container from belonging together."""
    names = {str(volume["name"]) for volume in volumes}
    faults: Faults = [
        ("volumeMounts", f"{mount['name']!r}: {NO_SUCH_VOLUME}")
        for mount in mounts
        if mount["name"] not in names
    ]
    if any(name.startswith(OWN_VOLUMES) for name in names):
        faults.append(("volumes", OWN_VOLUME))
    return faults


def repeated(field: str, values: Iterable[object]) -> Faults:
    """A fault for each value that is there more than once."""
    return [
        (field, f"{value!r} is given {times} times; keep one")
        for value, times in Counter(values).items()
        if times > 1
    ]
