"""The access file: who identifies people, and what these may do. TOML, read at the start.

[proxy]                                   # see proxy.py
addresses = ["10.1.0.0/16"]

[[grants]]                                # see grants.py
group = "ops"
permission = "admin"
"""

from __future__ import annotations

import tomllib
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tidework.access.grants import Grant
from tidework.errors import ConfigurationError


class ProxyPart(BaseModel):
    """addresses: of the proxies that are believed, as networks"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    addresses: tuple[IPv4Network | IPv6Network, ...] = Field(min_length=1)
    user_header: str = Field(default="X-Forwarded-User", pattern=r"^[A-Za-z0-9-]+$")
    groups_header: str = Field(default="X-Forwarded-Groups", pattern=r"^[A-Za-z0-9-]+$")


class AccessFile(BaseModel):
    """The file as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proxy: ProxyPart | None = None
    grants: tuple[Grant, ...] = ()

    @model_validator(mode="after")
    def _lets_somebody_in(self) -> Self:
        if self.proxy is None:
            raise ValueError("nobody identifies callers: add a table [proxy]")
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
