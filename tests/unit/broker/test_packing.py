"""Requests as bytes: what is packed once is what would be packed each time."""

from __future__ import annotations

import hiredis
import pytest

from tidework.broker.connection.packing import Command, pack, words_of
from tidework.broker.scripts import Call, Value, load_script
from tidework.model.identity import QueueName

CANCEL, STATS = load_script("cancel"), load_script("stats")


def call(queue: str, *argv: Value, script: str = "enqueue") -> Call:
    found = load_script(script)
    return Call(found, found.keys_of(QueueName("shop", queue)), argv)


COMMANDS: list[Command] = [
    call("emails", "a", b"\0\xff\r\n$1", 5, "", 1.5),
    call("emails", *["\u00fc"] * 2000),
    call("orders", "b"),
    call("emails", "a", script="cancel"),
    call("emails", script="stats"),
    Call(STATS, ("tw1:{shop/q}:jobs",), ("x",)),
    Call(STATS, (), ()),
    ("INFO", "server"),
    ("EVALSHA", "0" * 40, 0),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command)[:60])
def test_a_command_as_hiredis_packs_its_words(command: Command) -> None:
    wanted = hiredis.pack_command(words_of(command))  # type: ignore[arg-type]

    assert [pack([command]) for _ in range(2)] == [wanted, wanted]


def test_several_in_one_piece() -> None:
    assert pack(COMMANDS) == b"".join(pack([command]) for command in COMMANDS)


def test_the_words_of_a_call() -> None:
    made = Call(CANCEL, ("k1", "k2"), ("a", 1))

    assert words_of(made) == ("EVALSHA", CANCEL.sha, 2, "k1", "k2", "a", 1)
