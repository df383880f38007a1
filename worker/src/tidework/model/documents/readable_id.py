"""The id that a document names, although it cannot be read as a whole.

Its producer looks for it under that id: also where a bracket is missing at the end, a number is
NaN, or only the beginning was read.
"""

from __future__ import annotations

import re

from tidework.model.identity import is_job_id

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_OPEN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_NAME = re.compile(rb"\s*(%b)\s*:\s*" % _STRING, re.DOTALL)
_TOKEN = re.compile(rb'\s*(?:(%b)|([\[{])|([\]}])|[^\s"\[\]{}]++)' % _STRING, re.DOTALL)
_SCALAR = re.compile(rb'(?:%b|[^\s",\[\]{}]++)\s*' % _STRING, re.DOTALL)
_COMMA = re.compile(rb"\s*,")


def readable_id(raw: bytes) -> str:
    """The value of ``id``, or else of ``task_id``, if it is one; ''.

    raw: a document, or its beginning. Only its own members count, not those of what is in it.
    """
    found = _OPEN.match(raw)
    at = found.end() if found else len(raw)
    other = ""
    while name := _NAME.match(raw, at):
        end = _end_of_value(raw, name.end())
        if end is None:
            break
        if name[1] in (b'"id"', b'"task_id"') and (value := _as_id(raw[name.end() : end])):
            if name[1] == b'"id"':
                return value
            other = value
        comma = _COMMA.match(raw, end)
        if comma is None:
            break
        at = comma.end()
    return other


def _as_id(value: bytes) -> str:
    text = value.strip().strip(b'"').decode("ascii", "replace")
    return text if value.startswith(b'"') and is_job_id(text) else ""


def _end_of_value(raw: bytes, at: int) -> int | None:
    if raw[at : at + 1] not in (b"[", b"{"):
        scalar = _SCALAR.match(raw, at)
        return scalar.end() if scalar else None
    depth = 0
    while token := _TOKEN.match(raw, at):
        at = token.end()
        if token[2]:
            depth += 1
        elif token[3]:
            depth -= 1
            if not depth:
                return at
    return None
