"""The access file: who identifies people, and what these may do. TOML, read at the start.

[proxy]                                   # see proxy.py
addresses = ["10.1.0.0/16"]

[oidc]                                    # see oidc/
issuer = "https://id.example.com"
client_id = "tidework"
client_secret_file = "/run/secrets/oidc"
session_key_file = "/run/secrets/session"
url = "https://tasks.example.com"

[[grants]]                                # see grants.py
group = "ops"
permission = "admin"
"""

from __future__ import annotations

import tomllib
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tidework.access.access import LOOPBACK_NAMES
from tidework.access.grants import Grant
from tidework.errors import ConfigurationError


class ProxyPart(BaseModel):
    """addresses: of the proxies that are believed, as networks"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    addresses: tuple[IPv4Network | IPv6Network, ...] = Field(min_length=1)
    user_header: str = Field(default="X-Forwarded-User", pattern=r"^[A-Za-z0-9-]+$")
    groups_header: str = Field(default="X-Forwarded-Groups", pattern=r"^[A-Za-z0-9-]+$")


class OidcPart(BaseModel):
    """url: where people reach this server; its callback is below it
    name_claim, groups_claim: of the ID token
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: str
    client_id: str = Field(min_length=1)
    client_secret_file: Path | None = None
    session_key_file: Path
    url: str
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    name_claim: str = "email"
    groups_claim: str = "groups"
    session_hours: float = Field(default=8, gt=0, le=24 * 7)

    @field_validator("issuer", "url")
    @classmethod
    def _is_safe(cls, found: str) -> str:
        parts = urlsplit(found)
        if parts.scheme != "https" and not (
            parts.scheme == "http" and parts.hostname in LOOPBACK_NAMES
        ):
            raise ValueError(f"{found!r} is not an https:// URL; http is for the loopback alone")
        return found

    @field_validator("url")
    @classmethod
    def _has_no_path(cls, found: str) -> str:
        if urlsplit(found).path not in ("", "/"):
            raise ValueError(f"{found!r} has a path; the API is served at the root of its host")
        return found.rstrip("/")


class AccessFile(BaseModel):
    """The file as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proxy: ProxyPart | None = None
    oidc: OidcPart | None = None
    grants: tuple[Grant, ...] = ()

    @model_validator(mode="after")
    def _lets_somebody_in(self) -> Self:
        if self.proxy is None and self.oidc is None:
            raise ValueError("nobody identifies callers: add a table [proxy] or [oidc]")
        if not self.grants:
            raise ValueError("nobody may do anything: add a table [[grants]]")
        return self


def read_access_file(file: Path) -> AccessFile:
    """The file. Raises ConfigurationError, which names every field at fault."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{file}: the access file cannot be read: {error.strerror or error}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: this is not valid TOML: {error}") from error
    try:
        return AccessFile.model_validate(document)
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False, include_input=False):
            where = ".".join(str(part) for part in fault["loc"])
            text = fault["msg"].removeprefix("Value error, ")
            faults.append(f"{where}: {text}" if where else text)
        raise ConfigurationError(f"{file}: {'; '.join(faults)}") from error
