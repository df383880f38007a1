"""Who may call, as the settings say; where they say nothing, this machine alone, and to look."""

from __future__ import annotations

from importlib.metadata import entry_points

from tidework.access.access import LOOPBACK_NAMES, Access, Loopback
from tidework.access.access_file import read_access_file
from tidework.access.caller import Permission
from tidework.access.oidc.sign_in import LOGIN, OidcSignIn
from tidework.access.proxy import TrustedProxy
from tidework.access.tokens import StaticTokens
from tidework.access.ways import Way, Ways
from tidework.clock import Clock
from tidework.errors import ConfigurationError
from tidework.settings import DashboardSettings


def access_of(settings: DashboardSettings, clock: Clock) -> Access:
    """The way to sign in. Raises ConfigurationError for none where others reach the server."""
    ways: list[Way] = []
    remedies: list[str] = []
    sign_in = None
    if settings.dashboard_tokens_file is not None:
        ways.append(StaticTokens(settings.dashboard_tokens_file))
        remedies.append("send the header 'Authorization: Bearer TOKEN'")
    if settings.dashboard_access_file is not None:
        file = read_access_file(settings.dashboard_access_file)
        if file.proxy is not None:
            ways.append(TrustedProxy(file.proxy, file.grants))
            remedies.append("come through the proxy that signs people in")
        if file.oidc is not None:
            sign_in = OidcSignIn(file.oidc, file.grants, clock)
            ways.append(sign_in)
            remedies.append(f"sign in at {LOGIN}")
    if settings.dashboard_kubernetes:
        ways.append(_kubernetes(settings.namespace, clock))
        remedies.append("send a token of the cluster as 'Authorization: Bearer TOKEN'")
    if ways:
        return Ways(ways, ", or ".join(remedies), sign_in)
    if settings.dashboard_host not in LOOPBACK_NAMES:
        raise ConfigurationError(
            f"--host {settings.dashboard_host} lets other machines in, and nothing says who may "
            "call: give --tokens-file / TIDEWORK_DASHBOARD_TOKENS_FILE or --access-file / "
            "TIDEWORK_DASHBOARD_ACCESS_FILE or --kubernetes / TIDEWORK_DASHBOARD_KUBERNETES, "
            "or leave --host out"
        )
    return Loopback(Permission.VIEWER)


def _kubernetes(namespace: str, clock: Clock) -> Way:
    """Of another distribution, so that this one knows nothing of clusters."""
    for found in entry_points(group="tidework.access", name="kubernetes"):
        way: Way = found.load()(namespace, clock)
        return way
    raise ConfigurationError(
        "--kubernetes / TIDEWORK_DASHBOARD_KUBERNETES needs the distribution tidework-operator: "
        "install tidework-operator[dashboard], or take the image of the operator"
    )
