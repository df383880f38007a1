"""Users of a server: the rules that docs/redis-access.md gives them, and what scripts ask of them.

A server checks every command that a script calls against the rights of whoever called the script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import redis

from tidework.broker.scripts import load_script

DOCUMENT = Path(__file__).parents[2] / "docs" / "redis-access.md"
NAMESPACE = "shop"
"""The one of the document's examples."""
PASSWORD = "no-secret"

_COMMENT = re.compile(r"--.*")
_FUNCTION = re.compile(r"^local function (\w+).*?^end$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\w+")
_LITERAL = re.compile(r"'([A-Z]+)'")

Rules = tuple[str, ...]


def documented_roles() -> Mapping[str, Rules]:
    """Role -> its rules without the password, as the document's shell lines give them."""
    text = DOCUMENT.read_text("utf-8").replace("\\\n", " ")
    roles = {}
    for line in text.splitlines():
        if line.startswith(f"redis-cli ACL SETUSER {NAMESPACE}-") and " reset " in line:
            _, _, _, user, _, _, password, *rules = shlex.split(line)
            assert password == ">$PASSWORD", line
            roles[user.removeprefix(f"{NAMESPACE}-")] = tuple(rules)
    return roles


def commands_in(rules: Iterable[str]) -> frozenset[str]:
    """The commands that rules allow."""
    return frozenset(rule[1:] for rule in rules if rule.startswith("+"))


def without(rules: Rules, command: str) -> Rules:
    """The rules less one command."""
    assert f"+{command}" in rules
    return tuple(rule for rule in rules if rule != f"+{command}")


def say(client: redis.Redis, *words: str) -> Any:
    """One command, its reply as redis-py reads it."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


class User:
    """A user of a server, who may work in one namespace."""

    def __init__(self, client: redis.Redis, name: str, namespace: str) -> None:
        self.name = name
        self._client = client
        self.namespace = namespace

    def allow(self, rules: Sequence[str]) -> None:
        """These and nothing else, from now on: rules of the document, for its namespace."""
        own = [rule.replace(f"{{{NAMESPACE}/", f"{{{self.namespace}/") for rule in rules]
        say(self._client, "ACL", "SETUSER", self.name, "reset", "on", f">{PASSWORD}", *own)

    def url(self, server_url: str) -> str:
        """The URL of the server, with this user's login."""
        return server_url.replace("://", f"://{self.name}:{PASSWORD}@", 1)

    def refusals(self) -> list[str]:
        """What the server refused to this user: commands and keys.

        CLIENT SETINFO is not counted: redis-py tells its version and takes no for an answer.
        """
        found = self._client.acl_log(1000)
        own = {str(each["object"]) for each in found if each["username"] == self.name}
        return sorted(own - {"client|setinfo"})


def script_commands(name: str, known: frozenset[str]) -> frozenset[str]:
    """The commands that a script can come to call: those of functions it cannot reach left out.

    known: names of all commands, in lower case
    """
    text = _COMMENT.sub("", load_script(name).text)
    bodies = {found[1]: found[0] for found in _FUNCTION.finditer(text)}
    reached = [_FUNCTION.sub("", text)]
    commands: set[str] = set()
    while reached:
        body = reached.pop()
        commands |= {word.lower() for word in _LITERAL.findall(body)} & known
        reached += [bodies.pop(word) for word in set(_WORD.findall(body)) if word in bodies]
    return frozenset(commands)
