"""Requests as bytes. What every call of a script on a queue begins with is packed once.

hiredis gets text and bytes alone. Of a number it makes the text itself, in a step in which signal
handlers run, and does not look whether that failed: a handler that raises ended the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidework.broker.scripts import Call, Keys, Value

hiredis: Any
try:
    import hiredis
except ImportError:
    hiredis = None

_SAFE = frozenset({str, bytes})
Words = tuple[Value, ...]
Command = Call | Words
"""A script by its SHA, or a plain command."""


def words_of(command: Command) -> Words:
    """The command as it goes out."""
    if not isinstance(command, Call):
        return command
    return ("EVALSHA", command.script.sha, len(command.keys), *command.keys, *command.argv)


class Packer:
    """Packs what redis-py says itself when it connects."""

    def pack(self, *words: Value) -> list[bytes]:
        """One command, in one piece."""
        return [_packed(words)]


def pack(commands: Sequence[Command]) -> bytes:
    """All of them in one piece. Needs hiredis."""
    if len(commands) == 1:
        return _pack(commands[0])
    return b"".join([_pack(command) for command in commands])


def _pack(command: Command) -> bytes:
    if isinstance(command, Call):
        keys, argv = command.keys, command.argv
        if isinstance(keys, Keys) and argv:
            if not keys.packed:
                packed = _packed(words_of(Call(command.script, keys, ())))
                keys.packed = packed[packed.index(b"$") :]  # without the count of words
            count = len(keys) + len(argv) + 3
            packed = _packed(argv)
            return b"*%d\r\n%b%b" % (count, keys.packed, packed[packed.index(b"$") :])
    return _packed(words_of(command))


def _packed(words: Words) -> bytes:
    if not _SAFE.issuperset(map(type, words)):
        words = tuple([word if type(word) in _SAFE else _as_bytes(word) for word in words])
    packed: bytes = hiredis.pack_command(words)
    return packed


def _as_bytes(word: Value) -> bytes:
    if isinstance(word, str):
        return str.encode(word)  # of a class of its own
    if isinstance(word, bytes):
        return bytes(word)
    return repr(word).encode() if isinstance(word, float) else b"%d" % word
