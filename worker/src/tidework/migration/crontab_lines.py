"""The lines of a crontab, as cronie and Debian's cron read them (crontab(5)). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SETTING = re.compile(
    r"""\s*(?P<quote>["']?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)\s*=\s*(?P<value>.*?)\s*\Z"""
)
_BLANK = r"[ \t]+"
_ENTRY = re.compile(rf"\s*-?(?P<when>@\S+|(?:\S+{_BLANK}){{4}}\S+){_BLANK}(?P<rest>\S.*)\Z")
_USER = re.compile(rf"(?P<user>\S+){_BLANK}(?P<rest>\S.*)\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """A job. line: from 1; settings: the variables as they stand at this line; user: '' = none.

    command: for the shell; stdin: what follows the first ``%``, '' for nothing
    """

    line: int
    when: str
    command: str
    stdin: str
    user: str
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is none of comment, setting and job."""

    line: int
    text: str


def read_lines(text: str, *, with_user: bool) -> Iterator[Entry | Unreadable]:
    """All jobs. with_user: a user's name stands before each command (/etc/crontab, /etc/cron.d)."""
    settings: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        setting = _SETTING.fullmatch(line)
        if setting:
            settings[setting["name"]] = _unquoted(setting["value"])
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            yield Unreadable(number, line)
            continue
        user, rest = "", entry["rest"]
        if with_user:
            owned = _USER.fullmatch(rest)
            if owned is None:
                yield Unreadable(number, line)
                continue
            user, rest = owned["user"], owned["rest"]
        command, stdin = _split_input(rest)
        yield Entry(number, entry["when"], command, stdin, user, dict(settings))


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _split_input(text: str) -> tuple[str, str]:
    r"""At the first ``%``; the others are ends of lines. ``\%`` is a plain one."""
    parts = re.split(r"(?<!\\)%", text)
    command, *lines = (part.replace("\\%", "%") for part in parts)
    return command.rstrip(), "\n".join(lines).rstrip("\n") + "\n" if lines else ""
