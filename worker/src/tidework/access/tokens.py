"""Static tokens: a TOML file says whose a token is, and what its owner may do.

    [ann]
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    permission = "operator"
    namespaces = ["shop"]          # without this line: every namespace

The file is read again when it changes, so a token is given or withdrawn without a restart. One that
is wrong then leaves the tokens as they were, and the log says so.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import HTTPConnection

from tidework.access.caller import Caller, Permission
from tidework.errors import ConfigurationError, UnauthenticatedError
from tidework.meant import did_you_mean, listed
from tidework.model.identity import is_dns_label

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("namespaces", "permission", "sha256")
_PERMISSIONS = {permission.name.lower(): permission for permission in Permission}

logger = logging.getLogger(__name__)


class StaticTokens:
    """Callers by ``Authorization: Bearer``. Raises ConfigurationError for a file that is wrong."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = _version(file)
        self._callers = read_tokens(file)

    async def identify(self, request: HTTPConnection) -> Caller:
        """The owner of the token. Raises UnauthenticatedError."""
        found = await self.recognize(request)
        if found is not None:
            return found
        if _token_of(request):
            raise UnauthenticatedError("this token is not known, or not any more")
        raise UnauthenticatedError(
            "this server asks for a token: send the header 'Authorization: Bearer TOKEN'"
        )

    async def recognize(self, request: HTTPConnection) -> Caller | None:
        """The owner of the token; None without one that is known."""
        self._read_again()
        token = _token_of(request)
        if not token:
            return None
        given = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for digest, caller in self._callers.items():
            if hmac.compare_digest(digest, given):
                found = caller
        return found

    def _read_again(self) -> None:
        version = _version(self._file)
        if version == self._seen:
            return
        self._seen = version
        try:
            self._callers = read_tokens(self._file)
        except ConfigurationError as error:
            logger.error(  # noqa: TRY400 - the text says all
                "the tokens stay as they were: %s", error, extra={"event": "tokens_refused"}
            )


def _token_of(request: HTTPConnection) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _version(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def read_tokens(file: Path) -> dict[str, Caller]:
    """SHA-256 of a token -> its owner. Raises ConfigurationError."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{file}: the tokens cannot be read: {error.strerror or error}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: this is not valid TOML: {error}") from error
    found: dict[str, Caller] = {}
    for name, given in document.items():
        digest, caller = _entry(file, name, given)
        if digest in found:
            raise ConfigurationError(
                f"{file}: {name}: {found[digest].name} has the same token; give each its own"
            )
        found[digest] = caller
    if not found:
        raise ConfigurationError(f"{file}: there is no token in it, so nobody could sign in")
    return found


def _entry(file: Path, name: str, given: Any) -> tuple[str, Caller]:
    where = f"{file}: {name}"
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{where}: write a table: [{name}] with sha256 and permission")
    for field in given:
        if field not in _FIELDS:
            raise ConfigurationError(
                f"{where}: field {field!r} is not known{did_you_mean(field, _FIELDS) or ';'} "
                f"there are {listed(_FIELDS)}"
            )
    digest = given.get("sha256")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise ConfigurationError(
            f"{where}: sha256 is not the SHA-256 of a token, 64 characters of 0-9 and a-f; "
            "make one by: printf %s TOKEN | sha256sum"
        )
    permission = _PERMISSIONS.get(str(given.get("permission")))
    if permission is None:
        raise ConfigurationError(f"{where}: permission must be one of {listed([*_PERMISSIONS])}")
    return digest, Caller(name, permission, _namespaces(where, given.get("namespaces")), "token")


def _namespaces(where: str, given: Any) -> frozenset[str] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(
        isinstance(each, str) and is_dns_label(each) for each in given
    ):
        raise ConfigurationError(f"{where}: namespaces must be a list of names of namespaces")
    return frozenset(given)
