"""Cookies that only this server can read and make: encrypted by a key of a file.

A cookie says what it is for and until when, so one for a sign-in that is under way is not taken for
a session. All replicas of a server have the same key file. A new key ends all sessions.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from tidework.errors import ConfigurationError

FEWEST_CHARACTERS = 32
_HEADER = {"alg": "dir", "enc": "A256GCM"}
_ALGORITHMS = ["dir", "A256GCM"]


class Seal:
    """Seals and opens values. Raises ConfigurationError for a file that holds no key."""

    def __init__(self, file: Path) -> None:
        try:
            text = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{file}: the session key cannot be read: {error}") from error
        if len(text) < FEWEST_CHARACTERS:
            raise ConfigurationError(
                f"{file}: the session key has {len(text)} characters, and needs "
                f"{FEWEST_CHARACTERS} random ones: openssl rand -hex 32"
            )
        self._key = OctKey.import_key(hashlib.sha256(text.encode()).digest())

    def close(self, use: str, value: dict[str, Any], until: datetime) -> str:
        """The value as text that is valid for one use and until a moment."""
        body = json.dumps({"use": use, "until": until.timestamp(), "value": value})
        return jwe.encrypt_compact(_HEADER, body.encode(), self._key, algorithms=_ALGORITHMS)

    def open(self, use: str, text: str, now: datetime) -> dict[str, Any] | None:
        """The value; None if it was not made here, for this use, or is over."""
        try:
            found = jwe.decrypt_compact(text, self._key, algorithms=_ALGORITHMS)
            body = json.loads(found.plaintext or b"")
        except (JoseError, ValueError, TypeError):
            return None
        if body["use"] != use or body["until"] <= now.timestamp():
            return None
        value: dict[str, Any] = body["value"]
        return value
