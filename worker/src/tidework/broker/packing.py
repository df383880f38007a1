"""Requests as bytes. What every call of a script on a queue begins with is packed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidework.broker.scripts import Call, Keys, Value

hiredis: Any
try:
    import hiredis
except ImportError:
    hiredis = None

Words = tuple[Value, ...]
Command = Call | Words
"""A script by its SHA, or a plain command."""


def words_of(command: Command) -> Words:
    """The command as it goes out."""
    if not isinstance(command, Call):
        return command
    return ("EVALSHA", command.script.sha, len(command.keys), *command.keys, *command.argv)


def pack(commands: Sequence[Command]) -> bytes:
    """All of them in one piece. Needs hiredis."""
    if len(commands) == 1:
        return _pack(commands[0])
    return b"".join([_pack(command) for command in commands])


def _pack(command: Command) -> bytes:
    packed: bytes
    if isinstance(command, Call):
        keys, argv = command.keys, command.argv
        if isinstance(keys, Keys) and argv:
            if not keys.packed:
                packed = hiredis.pack_command(words_of(Call(command.script, keys, ())))
                keys.packed = packed[packed.index(b"$") :]  # without the count of words
            count = len(keys) + len(argv) + 3
            packed = hiredis.pack_command(argv)
            return b"*%d\r\n%b%b" % (count, keys.packed, packed[packed.index(b"$") :])
    packed = hiredis.pack_command(words_of(command))
    return packed
