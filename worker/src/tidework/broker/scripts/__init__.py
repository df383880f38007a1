"""Loads the Lua scripts: one state change per file, shared fragments composed in front.

A script's header says what it takes, and the loader builds the preamble from it, so that no
call site counts KEYS or ARGV by hand:

    -- flags: allow-oom                 (optional)
    -- keys: jobs ready counters        parts of the queue, become K.jobs, K.ready...
    -- args: limit lease_ms ...         become A.limit...; numbers are converted where needed
    -- reply: due ready ...             (optional) what the reply's parts are, by position
    -- uses: record waiting             files in scripts/fragments/, composed in this order
    -- seldom: finish                   (optional) likewise, but its functions are S.name

A script is run from its first line to its last in each call, and half of what a small call costs
is to make its functions. Those that few calls need are made when the first of them is asked for.

``...`` at the end of args means that further values follow, from ARGV[A.rest] on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from tidework.broker.keys import NAMESPACE_PARTS, QUEUE_PARTS, SHARED_PARTS, queue_key
from tidework.model.identity import QueueName

Value = str | bytes | int | float

_FUNCTION = re.compile(r"^local function (\w+)\(", re.MULTILINE)
_HEADER = re.compile(r"^-- (flags|keys|args|reply|uses|seldom): *(.*)$", re.MULTILINE)


class Keys(tuple[str, ...]):  # noqa: SLOT001 - a tuple has no room for slots of its own
    """KEYS of one script on one queue. ``packed``: what every such call begins with, once made."""

    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class Script:
    """A composed script.

    open_ended: values may follow the named arguments
    reply:      the parts of its reply in their order, "..." last if more may follow; () if it is
                short enough to be told in words
    """

    name: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    open_ended: bool
    reply: tuple[str, ...]
    text: str
    sha: str

    def keys_of(self, queue: QueueName) -> Keys:
        """KEYS for a call on ``queue``."""
        return _keys_of(self.sha, self.keys, queue)

    def argv(self, named: dict[str, Value], rest: Sequence[Value] = ()) -> tuple[Value, ...]:
        """ARGV in the header's order. Raises TypeError if the names are not exactly those."""
        if tuple(named) != self.args and set(named) != set(self.args):
            raise TypeError(f"{self.name}.lua takes {self.args}, got {tuple(named)}")
        if rest and not self.open_ended:
            raise TypeError(f"{self.name}.lua takes no further values")
        return (*[named[name] for name in self.args], *rest) if named else tuple(rest)


class Call(NamedTuple):
    """A script, its keys, its arguments."""

    script: Script
    keys: tuple[str, ...]
    argv: tuple[Value, ...]


@lru_cache(maxsize=4096)
def _keys_of(_sha: str, parts: tuple[str, ...], queue: QueueName) -> Keys:
    return Keys(queue_key(queue, part) for part in parts)


def _read(name: str) -> str:
    return files("tidework.broker").joinpath("scripts", name).read_text(encoding="utf-8")


def _header(text: str) -> dict[str, list[str]]:
    return {name: words.split() for name, words in _HEADER.findall(text)}


@cache
def load_script(name: str) -> Script:
    """Compose scripts/<name>.lua."""
    own = _read(f"{name}.lua")
    header = _header(own)
    fragments = [_read(f"fragments/{part}.lua") for part in header.get("uses", [])]
    seldom = [_read(f"fragments/{part}.lua") for part in header.get("seldom", [])]
    keys = list(header.get("keys", []))
    for fragment in (*fragments, *seldom):
        keys += [part for part in _header(fragment).get("keys", []) if part not in keys]
    unknown = set(keys) - {*QUEUE_PARTS, *SHARED_PARTS, *NAMESPACE_PARTS}
    if unknown:
        raise ValueError(f"{name}.lua names unknown keys: {sorted(unknown)}")
    args = header.get("args", [])
    open_ended = "..." in args
    if open_ended:
        args = args[: args.index("...")]
    flags = header.get("flags", [])
    shebang = f"#!lua flags={','.join(flags)}" if flags else "#!lua"
    lines = [
        shebang,
        "local K = {" + ", ".join(f"{key}=KEYS[{i}]" for i, key in enumerate(keys, 1)) + "}",
        "local A = {"
        + ", ".join(
            [f"{arg}=ARGV[{i}]" for i, arg in enumerate(args, 1)] + [f"rest={len(args) + 1}"]
        )
        + "}",
        *(["local S = {}"] if seldom else []),
        *fragments,
        *_made_when_asked_for(seldom),
        own,
    ]
    text = "\n".join(lines)
    # SHA-1 is how EVALSHA names a script; nothing here rests on its strength.
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    reply = tuple(header.get("reply", []))
    return Script(name, tuple(keys), tuple(args), open_ended, reply, text, sha)


def _made_when_asked_for(fragments: Sequence[str]) -> list[str]:
    """S.name is function ``name`` of one of the fragments."""
    if not fragments:
        return []
    names = [name for fragment in fragments for name in _FUNCTION.findall(fragment)]
    return [
        "setmetatable(S, {__index = function(_, name)",
        *fragments,
        ", ".join(f"S.{name}" for name in names) + " = " + ", ".join(names),
        "return rawget(S, name)",
        "end})",
    ]
