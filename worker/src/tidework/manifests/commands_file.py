"""A commands file: tasks that are commands, for a worker without an application in Python.

    commands:
      send-report:
        command: ["php", "report.php"]

YAML, or JSON. It is no document of a cluster: it lies beside the programs that it names, and a
TaskQueue names it as its app. Folders within it count from its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from tidework.errors import EnvelopeError, ManifestError
from tidework.manifests.faults import Fault, ManifestErrors, faults_of
from tidework.manifests.parsing import is_commands
from tidework.manifests.part import TEN_YEARS_S, DnsLabel, Part, refuse
from tidework.manifests.pod import Argument, VariableName, VariableValue
from tidework.manifests.reading import SUFFIXES, decode_text, fault_of_system
from tidework.manifests.yaml_text import YamlDocument, YamlError, read_documents
from tidework.model.command import COMMANDS_SUFFIXES, DEFAULT_MAX_OUTPUT, JOB_VARIABLES
from tidework.model.documents.strict_json import decode_json
from tidework.model.identity import is_task_name
from tidework.model.job import DEFAULT_PRIORITY
from tidework.model.retry import DEFAULT_DELAYS, DEFAULT_MAX_ATTEMPTS


class CommandEntry(Part):
    """One command."""

    command: tuple[Argument, ...] = Field(
        min_length=1,
        max_length=1000,
        description="The program and its arguments, which no shell reads. A program without a "
        "slash is looked for on PATH.",
    )
    working_dir: str = Field(
        default="",
        max_length=4096,
        description="Folder in which it starts, counted from that of the file, which it is unless "
        "given.",
    )
    env: dict[VariableName, VariableValue] = Field(
        default={},
        max_length=1000,
        description="Environment variables besides those of the worker.",
    )
    queue: DnsLabel = Field(
        default="default", description="The queue that its jobs are enqueued into."
    )
    timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        le=TEN_YEARS_S,
        description="Hard timeout of an attempt; without it the queue's.",
    )
    soft_timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        le=TEN_YEARS_S,
        description="When an attempt gets SIGTERM, so that it can end in order; below the hard "
        "timeout.",
    )
    max_attempts: int = Field(
        default=DEFAULT_MAX_ATTEMPTS, ge=1, le=1000, description="Attempts in all."
    )
    delays_seconds: tuple[float, ...] = Field(
        default=tuple(delay.total_seconds() for delay in DEFAULT_DELAYS),
        max_length=1000,
        description="Seconds before the second attempt, the third and so on; after the last of "
        "them each is twice the one before.",
    )
    priority: int = Field(
        default=DEFAULT_PRIORITY, ge=0, le=9, description="0 is the most urgent, 9 the least."
    )
    max_output_bytes: int = Field(
        default=DEFAULT_MAX_OUTPUT,
        ge=0,
        le=1 << 40,
        description="Bytes of its output that are logged per attempt.",
    )

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        faults: list[tuple[str | tuple[str, ...], str]] = []
        if not self.command[0]:
            faults.append(("command", "its first entry is the program and cannot be empty"))
        if any("\0" in text for text in (*self.command, self.working_dir)):
            faults.append(("command", "no argument and no folder may hold a NUL; remove it"))
        own = [name for name in JOB_VARIABLES if name in self.env]
        faults += [(("env", name), "is set by the worker; choose another name") for name in own]
        if any(delay < 0 for delay in self.delays_seconds):
            faults.append(("delaysSeconds", "a wait is negative; use 0 or more"))
        soft, hard = self.soft_timeout_seconds, self.timeout_seconds
        if soft is not None and hard is not None and soft >= hard:
            faults.append(("softTimeoutSeconds", "has to be below timeoutSeconds"))
        refuse(faults)
        return self


class CommandsFile(Part):
    """All of the file."""

    commands: dict[str, CommandEntry] = Field(
        min_length=1, description="The commands, each by the name of its task."
    )

    @model_validator(mode="after")
    def _has_names(self) -> Self:
        rule = "is not the name of a task: use 1 to 200 characters of A-Z a-z 0-9 _ . : / -"
        refuse([(("commands", name), rule) for name in self.commands if not is_task_name(name)])
        return self


def is_commands_file(path: Path) -> bool:
    """Is it a file with ``commands`` at its top? What cannot be read is none."""
    if path.suffix not in COMMANDS_SUFFIXES or not path.is_file():
        return False
    try:
        data = _read(path)[0]
    except (YamlError, OSError):
        return False
    return is_commands(data)


def read_commands(path: Path) -> CommandsFile:
    """Read a commands file. Raises ManifestErrors with every fault found."""
    try:
        data, source = _read(path)
    except YamlError as error:
        raise ManifestErrors(
            [ManifestError(error.reason, file=str(path), line=error.line)]
        ) from error
    except OSError as error:
        raise ManifestErrors([ManifestError(fault_of_system(error), file=str(path))]) from error
    faults = [] if source is None else list(source.faults)
    found = None
    if not isinstance(data, dict):
        faults.append(Fault((), "a commands file has to be a mapping with commands at its top"))
    elif not faults:
        found = _parse(data, faults)
    if found is None:
        raise ManifestErrors([_error(fault, path, source) for fault in faults])
    return found


def _parse(data: dict[str, Any], faults: list[Fault]) -> CommandsFile | None:
    try:
        return CommandsFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        faults += faults_of(error, CommandsFile)
        return None


def _read(path: Path) -> tuple[Any, YamlDocument | None]:
    """The data, and where in the text it stands; JSON is read by its own rules, without lines."""
    text = decode_text(path.read_bytes())
    if path.suffix not in SUFFIXES:
        try:
            return decode_json(text.encode()), None
        except EnvelopeError as error:
            raise YamlError(error.reason, None) from error
    found = list(read_documents(text))
    if len(found) > 1:
        line = found[1].line_of(())
        raise YamlError("a commands file is one document; put all under one commands", line)
    return (found[0].data, found[0]) if found else (None, None)


def _error(fault: Fault, path: Path, source: YamlDocument | None) -> ManifestError:
    line = None if source is None else source.line_of(fault.path)
    return ManifestError(fault.reason, file=str(path), line=line, field=fault.field)


def commands_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Those of the files, and of the files in the folders, that are commands files."""
    files: list[Path] = []
    for path in paths:
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    return tuple(file for file in files if is_commands_file(file))
