"""A crontab into CronTasks, a queue for them, and the commands that they run. Pure.

As cron did: a command runs once, whatever its exit code; runs may overlap; what was due while
nothing ran is not made up for; ``dst: Once`` is Debian's own rule.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidework.errors import ScheduleError
from tidework.manifests.timing import reason_of
from tidework.migration.crontab_lines import Entry, Unreadable, read_lines
from tidework.migration.crontab_time import converted
from tidework.migration.takeover import API_VERSION, Note, Taken, TakenCommand, Takeover, label_of

LEFT_OUT = "left out"
"""How the note of a line begins that became no CronTask."""

_SHELL = "/bin/sh"
_DAY_S = 86_400

# Settings that cron reads itself; all others are for the command.
_ZONE, _MAIL, _DELAY = "CRON_TZ", frozenset({"MAILTO", "MAILFROM"}), "RANDOM_DELAY"
_OWN = frozenset({_ZONE, _DELAY, "SHELL", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"}) | _MAIL

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN = re.compile(r"[\w./+-]+")
_SKIPPED = frozenset({"cd", "test", "[", "[[", "sleep", "export", "command", "echo", "printf"})
_SHELL_WORDS = frozenset({"if", "then", "else", "elif", "fi", "while", "do", "done", "!"})
_WRAPPERS = frozenset({"exec", "nice", "ionice", "nohup", "time", "sudo", "env"})
_INTERPRETER = re.compile(r"(ba|da|z|k)?sh|php[0-9.]*|python[0-9.]*|perl|ruby|node|Rscript|java")
_JOINTS = frozenset("&|;")
_BRACKETS = frozenset("(){}")


@dataclass(frozen=True, slots=True)
class CrontabOptions:
    """namespace: '' = the documents name none; time_zone: of the machine that it comes from."""

    queue: str = "crontab"
    module: str = "crontab_tasks"
    namespace: str = ""
    time_zone: str = "UTC"
    with_user: bool = False


def take_over(text: str, source: str, options: CrontabOptions) -> Takeover:
    """Every job of the crontab ``text``. What cannot be taken over is told in the notes."""
    taken: list[Taken] = []
    notes: list[Note] = []
    names: set[str] = set()
    told: set[str] = set()
    for found in read_lines(text, with_user=options.with_user):
        place = f"line {found.line}"
        if isinstance(found, Unreadable):
            notes.append(Note(place, f"{LEFT_OUT}: not a job and not a setting: {found.text!r}"))
        elif found.when == "@reboot":
            why = "@reboot has no meaning where nothing boots"
            notes.append(Note(place, f"{LEFT_OUT}: {why}: {found.command}"))
        else:
            try:
                each = _take(found, names, options)
            except ScheduleError as error:
                notes.append(Note(place, f"{LEFT_OUT}: {reason_of(error)}: {found.command}"))
                continue
            taken.append(each)
            notes += [Note(place, remark) for remark in each.remarks[1:]]
            fresh = [remark for remark in _about_settings(found) if remark not in told]
            notes += [Note(place, remark) for remark in fresh]
            told.update(fresh)
    remarks = (
        "One pod at most: the commands ran on one machine, and may rely on its files and users.",
        "On a cluster, name an image that holds the worker and the commands.",
    )
    return Takeover(source, _queue(options), tuple(taken), tuple(notes), remarks)


def _queue(options: CrontabOptions) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "TaskQueue",
        "metadata": _metadata(options.queue, options),
        "spec": {
            "app": f"{options.module}:app",
            "slots": 4,
            "maxReplicas": 1,
            "hardTimeoutSeconds": _DAY_S,
        },
    }


def _metadata(name: str, options: CrontabOptions) -> dict[str, Any]:
    return {"name": name} | ({"namespace": options.namespace} if options.namespace else {})


def _take(entry: Entry, names: set[str], options: CrontabOptions) -> Taken:
    when = converted(entry.when)
    name = label_of(_name_in(entry.command), names)
    zone = entry.settings.get(_ZONE) or options.time_zone
    spec: dict[str, Any] = {
        "queue": options.queue,
        "task": name,
        "schedule": when.schedule,
        "timeZone": zone,
        "concurrencyPolicy": "Allow",
        "catchUp": "None",
        "maxAttempts": 1,
    }
    if not when.safe:
        spec["suspend"] = True
    document = {
        "apiVersion": API_VERSION,
        "kind": "CronTask",
        "metadata": _metadata(name, options),
        "spec": spec,
    }
    command = TakenCommand(
        name,
        argv=(entry.settings.get("SHELL") or _SHELL, "-c", entry.command),
        env={key: value for key, value in entry.settings.items() if key not in _OWN},
        cwd=entry.settings.get("HOME", ""),  # where cron starts them
        stdin=entry.stdin,
    )
    written = f"line {entry.line}: {entry.when} {entry.command}"
    return Taken(document, command, (written, *when.remarks))


def _about_settings(entry: Entry) -> list[str]:
    """The same for many jobs, so it is told once."""
    settings: Mapping[str, str] = entry.settings
    found = []
    mail = settings.get("MAILTO")
    if mail:
        found.append(
            f"MAILTO={mail}: nothing is mailed; output is in the worker's log, a command that "
            "fails becomes a dead letter, which alerts can watch"
        )
    if settings.get(_DELAY):
        found.append(f"{_DELAY}={settings[_DELAY]} is not served; spread minutes with H")
    if entry.user:
        found.append(f"ran as user {entry.user}; here it runs as the worker's user")
    return found


def _name_in(command: str) -> str:
    """What the command line runs: the file's name of its first program that does something."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = command.split()
    skipping = False
    for word in words:
        if not set(word) - _JOINTS:
            skipping = False
        elif skipping or word in _SHELL_WORDS or not set(word) - _BRACKETS:
            continue
        elif word in _SKIPPED:
            skipping = True
        elif _is_program(word):
            return _file_name(word)
    return next((_file_name(word) for word in words if _PLAIN.fullmatch(word)), "command")


def _is_program(word: str) -> bool:
    name = _file_name(word)
    return not (
        not _PLAIN.fullmatch(word)
        or word.startswith("-")
        or word.isdigit()
        or _ASSIGNMENT.match(word)
        or name in _WRAPPERS
        or _INTERPRETER.fullmatch(name)
    )


def _file_name(path: str) -> str:
    """Without folders and extension."""
    name = path.rstrip("/").rpartition("/")[2]
    return name.rpartition(".")[0] or name
