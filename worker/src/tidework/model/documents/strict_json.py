"""JSON that every reader understands alike: what others would guess at is refused."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from itertools import accumulate
from typing import Any, NoReturn

from tidework.errors import EnvelopeError

MAX_DEPTH = 100
"""How deep arrays and objects may lie in each other, the document itself counted."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}


def encode_json(value: object, *, field: str) -> bytes:
    """Compact UTF-8 JSON. Raises EnvelopeError for what JSON cannot say (NaN, objects...)."""
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EnvelopeError(f"not JSON data: {error}; convert it first", field=field) from error


def decode_json(raw: bytes) -> Any:
    """Parse what every reader of JSON understands alike: UTF-8 without a byte order mark, no key
    twice in an object, no NaN, no number beyond a double, no half of a surrogate pair, no more
    than MAX_DEPTH levels.

    Raises EnvelopeError with the place of the fault.
    """
    try:
        _refuse_nesting(raw)
        found = _DECODER.decode(raw.decode())
        if b"\\u" in raw and _SURROGATE.search(raw):
            _refuse_half_pairs(found)
        return found
    except json.JSONDecodeError as error:
        if raw.startswith(codecs.BOM_UTF8):
            reason = "begins with a byte order mark (BOM); write UTF-8 without it"
            raise EnvelopeError(f"not valid JSON: {reason}") from error
        raise EnvelopeError(
            f"not valid JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from error
    except UnicodeDecodeError as error:
        raise EnvelopeError(f"not valid UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise EnvelopeError("nested too deeply") from error
    except ValueError as error:
        raise EnvelopeError(f"not valid JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} comes twice in one object")
    return found


def _finite(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"{shown(text)} is more than a 64-bit float holds")
    return found


def _refuse_half_pairs(found: Any) -> None:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{shown(error.object[error.start])} is half of a surrogate pair"
        ) from error


def _refuse_nesting(raw: bytes) -> None:
    """As ``refuse_depth``, before anything is made of it: what is nested costs memory."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    brackets = _STRINGS.sub(b"", raw).translate(None, _NO_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")


def refuse_depth(found: Any, raw: bytes) -> None:
    """A fixed bound, since how deep Python itself can read depends on who calls it.

    raw: the same as JSON. Raises ValueError.
    """
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    level, depth = [found], 0
    while level := [each for each in level if isinstance(each, (dict, list, tuple))]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


# Made once: json.dumps and json.loads would make them at every call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False)
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant
)


def shown(value: object) -> str:
    """A value as an error shows it, however large it is."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
