"""Params of a job on their way out: a mapping, or the JSON that a task's signature made of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidework.errors import EnvelopeError
from tidework.model.documents.strict_json import decode_json, encode_json, refuse_depth


class EncodedParams(Mapping[str, Any]):
    """Params as they go into the envelope; read only if somebody looks into them.

    raw:    a JSON object, compact
    unions: how its unions are to be read, see wire_schema.Unions
    """

    __slots__ = ("_found", "raw", "unions")

    def __init__(self, raw: bytes, unions: str = "") -> None:
        self.raw = raw
        self.unions = unions
        self._found: Mapping[str, Any] | None = None

    @property
    def _mapping(self) -> Mapping[str, Any]:
        if self._found is None:
            self._found = decode_json(self.raw)
        return self._found

    def __getitem__(self, name: str) -> Any:
        return self._mapping[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def __len__(self) -> int:
        return len(self._mapping)

    def __repr__(self) -> str:
        return f"EncodedParams({self.raw!r})"


def encode_params(params: Mapping[str, Any]) -> bytes:
    """Compact JSON. Raises EnvelopeError for what JSON cannot say, and for what is too deep."""
    if isinstance(params, EncodedParams):
        return params.raw
    raw = encode_json(params, field="params")
    try:
        refuse_depth([params], raw)  # a level for the document
    except ValueError as error:
        raise EnvelopeError(str(error), field="params") from error
    return raw
