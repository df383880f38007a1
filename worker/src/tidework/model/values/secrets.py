"""Secrets as params and results: not stored, unless their type says that they may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer, SecretStr

StoredSecret = Annotated[
    SecretStr,
    PlainSerializer(SecretStr.get_secret_value, return_type=str, when_used="json"),
]
"""A SecretStr that may lie in Redis as plain text until its job is forgotten: whoever reads the
queue reads it. It stays masked in logs and errors."""
