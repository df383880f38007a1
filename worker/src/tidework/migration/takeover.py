"""What a migration comes to, and its files: documents with their remarks, and the commands.

The seam between schedule and command is a task's name: the CronTask names it, a call of
``app.command`` in a Python module says what it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tidework.errors import ConfigurationError

API_VERSION = "tidework.dev/v1alpha1"
DOCUMENTS = "tidework.yaml"

_MAX_LABEL = 52  # what Kubernetes leaves a CronJob, and room for a number


@dataclass(frozen=True, slots=True)
class TakenCommand:
    """What a task runs.

    env: beside the worker's own variables; cwd: '' = the worker's folder
    stdin: what it reads, None = the job's document; max_attempts: 1 = no second try
    """

    task: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    stdin: str | None = None
    max_attempts: int = 1


@dataclass(frozen=True, slots=True)
class Note:
    """What a person has to know. ``place``: a line of the source or a field, '' for all of it."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


@dataclass(frozen=True, slots=True)
class Taken:
    """One CronTask. remarks: stand above it in the file."""

    document: dict[str, Any]
    command: TakenCommand
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Takeover:
    """source: what it was made of, for people; queue: the TaskQueue of all of it."""

    source: str
    queue: dict[str, Any]
    taken: tuple[Taken, ...]
    notes: tuple[Note, ...]
    queue_remarks: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Name of the Python module with the commands."""
        app: str = self.queue["spec"]["app"]
        return app.partition(":")[0]


def write_files(found: Takeover, folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write documents and commands; the paths. Raises ConfigurationError if they exist."""
    files = {
        folder / DOCUMENTS: render_documents(found),
        folder / f"{found.module}.py": render_module(found),
    }
    present = [str(path) for path in files if path.exists()]
    if present and not overwrite:
        raise ConfigurationError(
            f"{', '.join(present)} exist(s); choose another --output, or say --overwrite"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write into {folder}: {error.strerror}") from error
    return list(files)


def render_documents(found: Takeover) -> str:
    """YAML, the remarks of each document above it."""
    parts = [_document(found.queue, found.queue_remarks)]
    parts += [_document(each.document, each.remarks) for each in found.taken]
    return f"# Taken over from {_one_line(found.source)}.\n" + "---\n".join(parts)


def _document(document: Mapping[str, Any], remarks: Sequence[str]) -> str:
    above = "".join(f"# {_one_line(remark)}\n" for remark in remarks)
    body = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=100)
    return f"{above}{body}"


def _one_line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


_HEAD = '''\
"""Commands taken over from {source}, each a task of this application.

The exit code of a command is its outcome: 0 a success, 65 a dead letter at once, any other a failed
attempt (docs/exec-tasks.md). Its output is in the worker's log.
"""

from __future__ import annotations

from tidework import Tidework

app = Tidework({name}, queue={queue})
'''
_FED = '''

def fed(text: str, *argv: str) -> list[str]:
    """A command that reads this text, as under cron, instead of its job's document."""
    return ["/bin/sh", "-c", 'text=$1; shift; printf %s "$text" | "$@"', "fed", text, *argv]

'''


def render_module(found: Takeover) -> str:
    """A Python module: an application whose tasks run the commands."""
    commands = [each.command for each in found.taken]
    head = _HEAD.format(
        source=_one_line(found.source).replace("\\", "/").replace('"', "'"),
        name=_literal(found.module),
        queue=_literal(found.queue["metadata"]["name"]),
    )
    feeding = _FED if any(command.stdin is not None for command in commands) else ""
    return head + feeding + "".join(map(_call, commands))


def _call(command: TakenCommand) -> str:
    words = ", ".join(map(_literal, command.argv))
    argv = f"[{words}]" if command.stdin is None else f"fed({_literal(command.stdin)}, {words})"
    arguments = [_literal(command.task), argv]
    if command.env:
        arguments.append(f"env={_literal(dict(command.env))}")
    if command.cwd:
        arguments.append(f"cwd={_literal(command.cwd)}")
    arguments.append(f"max_attempts={command.max_attempts}")
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"\napp.command(\n{lines})\n"


def _literal(value: object) -> str:
    """Text and mappings of it are written in Python as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def label_of(text: str, taken: set[str]) -> str:
    """A name for a document made of ``text`` that is not among ``taken``, and then is."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not words[:1].isalpha():
        words = f"task-{words}"
    words = words[:_MAX_LABEL].strip("-")
    name, number = words, 1
    while name in taken:
        number += 1
        name = f"{words}-{number}"
    taken.add(name)
    return name
