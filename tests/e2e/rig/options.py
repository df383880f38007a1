"""What the environment says about the rig; README.md of tests/e2e explains each variable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class RigError(Exception):
    """The rig cannot work: what, where, and how to mend it."""


@dataclass(frozen=True)
class Options:
    """One field per variable."""

    cluster: str
    """Name of the kind cluster."""
    node_image: str | None
    """None: kind's own, or the one made here."""
    kind_config: Path | None
    existing: bool
    """Use the cluster that KUBECONFIG points at, and neither make nor delete any."""
    registry: str | None
    """Where images for an existing cluster are sent that is not a kind cluster."""
    offline: bool | None
    """None: find out whether images can be pulled."""
    keep: bool
    cache: Path


def read_options(environment: Mapping[str, str]) -> Options:
    """Read the variables. Raises RigError for a value that none of them can have."""
    name = environment.get("E2E_CLUSTER") or "tidework-e2e"
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise RigError(
            f"E2E_CLUSTER={name}: a cluster's name has a-z, 0-9 and '-' only, at most 41 of them"
        )
    config = environment.get("E2E_KIND_CONFIG")
    if config and not Path(config).is_file():
        raise RigError(f"E2E_KIND_CONFIG={config}: there is no such file")
    return Options(
        cluster=name,
        node_image=environment.get("E2E_NODE_IMAGE") or None,
        kind_config=Path(config).resolve() if config else None,
        existing=_flag(environment, "E2E_EXISTING") or False,
        registry=(environment.get("E2E_REGISTRY") or "").rstrip("/") or None,
        offline=_flag(environment, "E2E_OFFLINE"),
        keep=_flag(environment, "KEEP") or False,
        cache=_cache(environment),
    )


def _flag(environment: Mapping[str, str], name: str) -> bool | None:
    text = environment.get(name, "")
    if text not in ("", "0", "1"):
        raise RigError(f"{name}={text}: say 1 for yes, 0 for no, or leave it away")
    return text == "1" if text else None


def _cache(environment: Mapping[str, str]) -> Path:
    """The same folder as in offline/shared.sh."""
    if environment.get("E2E_CACHE"):
        return Path(environment["E2E_CACHE"]).resolve()
    caches = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "/")) / ".cache"
    return Path(caches) / "tidework-e2e"
