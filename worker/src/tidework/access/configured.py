"""Who may call, as the settings say; where they say nothing, this machine alone, and to look."""

from __future__ import annotations

from tidework.access.access import LOOPBACK_NAMES, Access, Loopback
from tidework.access.caller import Permission
from tidework.access.tokens import StaticTokens
from tidework.errors import ConfigurationError
from tidework.settings import DashboardSettings


def access_of(settings: DashboardSettings) -> Access:
    """The way to sign in. Raises ConfigurationError for none where others reach the server."""
    if settings.dashboard_tokens_file is not None:
        return StaticTokens(settings.dashboard_tokens_file)
    if settings.dashboard_host not in LOOPBACK_NAMES:
        raise ConfigurationError(
            f"--host {settings.dashboard_host} lets other machines in, and nothing says who may "
            "call: give --tokens-file / TIDEWORK_DASHBOARD_TOKENS_FILE, or leave --host out"
        )
    return Loopback(Permission.VIEWER)
