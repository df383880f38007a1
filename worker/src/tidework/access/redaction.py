"""What no answer of the API shows: values of fields that are called like secrets.

Nobody sees them, whatever the permission: a page may be looked at by more than one person, and the
value lies in Redis for those who need it. A field is known by its name or by its path; in texts
(messages, tracebacks, lines of a log) a value is known by the name in front of it, as a token of a
header or a password of a URL, or since it is the value of such a field of the same answer.

This keeps secrets from being shown by mistake. It is not a wall: a task can write its secret into
any text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tidework.errors import ConfigurationError

MASK = "[redacted]"
NAMES = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "authorization",
        "apikey",
        "privatekey",
        "accesskey",
        "credential",
        "cookie",
    }
)
"""Parts of names, in lower case and without what is no letter or digit."""
DEEPEST = 50
"""Levels of a value that are looked at; what lies deeper is not shown."""
SHORTEST = 6
"""Characters that a value needs to be looked for in texts: shorter ones are words of their own."""

_NO_WORD = re.compile(r"[^a-z0-9]+")
_PATH = re.compile(r"\$(\.(\*|[A-Za-z0-9_-]+))+")
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_IN_URL = re.compile(r"(://[^/\s:@]{0,200}:)[^/\s@]{1,500}@")


@dataclass(frozen=True, slots=True)
class Redaction:
    """names: parts of names of fields. paths: steps from the whole value on, * = any"""

    names: frozenset[str] = NAMES
    paths: frozenset[tuple[str, ...]] = frozenset()

    def hides(self, path: tuple[str, ...]) -> bool:
        """Is the field of this path one that is not shown?"""
        name = _NO_WORD.sub("", path[-1].lower())
        return any(part in name for part in self.names) or any(
            len(each) == len(path)
            and all(step in ("*", found) for step, found in zip(each, path, strict=True))
            for each in self.paths
        )


USUAL = Redaction()


def read_redaction(text: str) -> Redaction:
    """The rules of a setting, with a space between two: ``iban`` hides fields whose name has that
    part, ``$.card.number`` one field, ``$.items.*.iban`` one of every item; ``-token`` takes a part
    of NAMES away. Raises ConfigurationError.
    """
    names, paths = set(NAMES), set[tuple[str, ...]]()
    for word in text.split():
        part = _NO_WORD.sub("", word.lower())
        if word.startswith("$") and _PATH.fullmatch(word):
            paths.add(tuple(word[2:].split(".")))
        elif word.startswith("-") and part in NAMES:
            names.discard(part)
        elif not word.startswith(("$", "-")) and part:
            names.add(part)
        else:
            raise ConfigurationError(
                f"{word!r} is not a rule of redaction: write a part of a name (iban), a path "
                "($.card.number, $.items.*.iban), or -PART for one of "
                f"{', '.join(sorted(NAMES))}"
            )
    return Redaction(frozenset(names), frozenset(paths))


class Redactor:
    """Redacts one answer; ``fields``: the paths of what is not shown, in order."""

    def __init__(self, redaction: Redaction) -> None:
        self.fields: list[str] = []
        self._redaction = redaction
        self._values: set[str] = set()

    def value(self, where: str, found: Any) -> Any:
        """A JSON value without what is not shown; ``where``: its name in the answer."""
        return self._value(where, (), found)

    def _value(self, where: str, path: tuple[str, ...], found: Any) -> Any:
        if path and found is not None and not path[-1].isdigit() and self._redaction.hides(path):
            self.fields.append(where)
            self._remember(found)
            return MASK
        if len(path) >= DEEPEST and isinstance(found, Mapping | list | tuple):
            self.fields.append(where)
            return MASK
        if isinstance(found, Mapping):
            return {
                name: self._value(f"{where}.{name}", (*path, str(name)), each)
                for name, each in found.items()
            }
        if isinstance(found, list | tuple):
            return [
                self._value(f"{where}.{index}", (*path, str(index)), each)
                for index, each in enumerate(found)
            ]
        return found

    def text(self, where: str, found: str) -> str:
        """A text without what is not shown; call it after ``value``, whose secrets it looks for."""
        shown = _BEARER.sub(rf"\1 {MASK}", found)
        shown = _IN_URL.sub(rf"\1{MASK}@", shown)
        shown = _said(self._redaction.names).sub(rf"\1{MASK}", shown)
        for value in sorted(self._values, key=len, reverse=True):
            shown = shown.replace(value, MASK)
        if shown != found:
            self.fields.append(where)
        return shown

    def _remember(self, found: Any) -> None:
        if isinstance(found, str) and len(found) >= SHORTEST:
            self._values |= {found, json.dumps(found)[1:-1]}
        elif isinstance(found, Mapping):
            for each in found.values():
                self._remember(each)
        elif isinstance(found, list | tuple):
            for each in found:
                self._remember(each)


@cache
def _said(names: frozenset[str]) -> re.Pattern[str]:
    """A name and what follows it up to the value. Bounded, so that no text takes long."""
    parts = "|".join("[_-]?".join(re.escape(part)) for part in sorted(names)) or r"(?!)"
    name = rf"""(?<![\w-])["']?[\w-]{{0,40}}?(?:{parts})[\w-]{{0,40}}["']?"""
    value = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&)}\]"']+)"""
    return re.compile(rf"({name}\s{{0,3}}[=:]\s{{0,3}})(?!\[redacted\]){value}", re.IGNORECASE)


def is_masked(found: Any) -> bool:
    """Does the value hold a MASK, so that it comes from an answer and is not what it was?"""
    if isinstance(found, Mapping):
        return any(is_masked(each) for each in found.values())
    if isinstance(found, list | tuple):
        return any(is_masked(each) for each in found)
    return isinstance(found, str) and MASK in found
