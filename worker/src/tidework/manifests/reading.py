"""Files and folders into queues and CronTasks that fit together.

Reading goes on past every fault, so that all of them are told at once. It is all or nothing:
whoever reads again after an edit keeps what it has when this raises.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidework.errors import ConfigurationError, ManifestError
from tidework.manifests.crontask import CronTask
from tidework.manifests.faults import Fault, ManifestErrors, suggestion
from tidework.manifests.parsing import KINDS, is_commands, parse_document
from tidework.manifests.taskqueue import TaskQueue
from tidework.manifests.yaml_text import YamlDocument, YamlError, read_documents
from tidework.model.command import COMMANDS_SUFFIXES
from tidework.model.identity import QueueName, is_dns_label

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Manifests:
    """What was read, in the order of the documents.

    files: each file read, once; folders: queue -> the folder of its document's file, absolute
    sources: where each document stands, by kind, namespace and name
    """

    queues: tuple[TaskQueue, ...]
    crontasks: tuple[CronTask, ...]
    files: tuple[Path, ...]
    folders: Mapping[QueueName, Path]
    sources: Mapping[tuple[str, str, str], tuple[Path, YamlDocument]] = field(default_factory=dict)

    def error(self, document: TaskQueue | CronTask, reason: str, *path: str) -> ManifestError:
        """What is wrong with a field of a document, with the place where it stands."""
        file, source = self.sources[_key_of(document)]
        fault = Fault(path, reason)
        return ManifestError(reason, file=str(file), line=source.line_of(path), field=fault.field)

    @property
    def commands_files(self) -> tuple[Path, ...]:
        """Apps that are commands files, absolute, as far as workers start in ``folders``."""
        return tuple(
            (self.folders[queue.queue_name] / queue.spec.app).resolve()
            for queue in self.queues
            if queue.spec.app.endswith(COMMANDS_SUFFIXES)
        )


def _key_of(document: TaskQueue | CronTask) -> tuple[str, str, str]:
    return document.kind, document.metadata.namespace, document.metadata.name


@dataclass(frozen=True, slots=True)
class _Placed:
    """A document of a file; ``parsed`` is None if it has faults.

    What can be read of a faulty document still takes part in the checks between documents, so that
    mending one fault brings up no others.
    """

    file: Path
    source: YamlDocument
    parsed: TaskQueue | CronTask | None
    namespace: str

    @property
    def kind(self) -> str:
        return self.text("kind")

    @property
    def name(self) -> tuple[str, str]:
        """Namespace and name; '' for what is not there."""
        return self.text("metadata", "namespace") or self.namespace, self.text("metadata", "name")

    def text(self, *path: str) -> str:
        """The text at ``path``, '' if there is none."""
        found = self.source.data
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, str) else ""

    def error(self, reason: str, *path: str) -> ManifestError:
        fault = Fault(path, reason)
        line = self.source.line_of(path)
        return ManifestError(reason, file=str(self.file), line=line, field=fault.field)


def read_manifests(paths: Sequence[Path], *, namespace: str = "default") -> Manifests:
    """Read all documents of the files, and of the *.yaml and *.yml files of the folders.

    namespace: of documents that name none. Raises ManifestErrors with every fault found.
    """
    if not is_dns_label(namespace):
        raise ConfigurationError(f"namespace {namespace!r} is not a DNS label: use a-z, 0-9, '-'")
    files, errors = _find(paths)
    placed = []
    named = {path.resolve() for path in paths}
    for file in files:
        found, faults = _read(file, namespace, is_named=file.resolve() in named)
        placed += found
        errors += faults
    errors += _repeated(placed) + _same_uid(placed) + _stray(placed) + _too_long(placed)
    if errors:
        order = {str(file): place for place, file in enumerate(files)}
        errors.sort(key=lambda error: (order.get(error.file, -1), error.line or 0))
        raise ManifestErrors(errors)
    parsed = [document.parsed for document in placed]
    return Manifests(
        queues=tuple(found for found in parsed if isinstance(found, TaskQueue)),
        crontasks=tuple(found for found in parsed if isinstance(found, CronTask)),
        files=files,
        folders={
            document.parsed.queue_name: document.file.resolve().parent
            for document in placed
            if isinstance(document.parsed, TaskQueue)
        },
        sources={
            _key_of(document.parsed): (document.file, document.source)
            for document in placed
            if document.parsed is not None
        },
    )


def manifest_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that ``read_manifests`` would read now. Raises ManifestErrors."""
    files, errors = _find(paths)
    if errors:
        raise ManifestErrors(errors)
    return files


def _find(paths: Sequence[Path]) -> tuple[tuple[Path, ...], list[ManifestError]]:
    found: dict[Path, Path] = {}  # a file that is named twice is read once
    errors = []
    if not paths:
        errors.append(ManifestError("name a file or a folder to read", file="manifests"))
    for path in paths:
        try:
            files = _in_folder(path) if path.is_dir() else [path]
        except OSError as error:
            errors.append(ManifestError(fault_of_system(error), file=str(path)))
            continue
        if not files:
            reason = f"the folder holds no {' or '.join(f'*{suffix}' for suffix in SUFFIXES)} file"
            errors.append(ManifestError(reason, file=str(path)))
        for file in files:
            found.setdefault(file.resolve(), file)
    return tuple(found.values()), errors


def _in_folder(folder: Path) -> list[Path]:
    """Its manifests, by name. Hidden files are left out: editors keep their own there."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file()
    )


def _read(
    file: Path, namespace: str, *, is_named: bool
) -> tuple[list[_Placed], list[ManifestError]]:
    """The documents of one file, those with faults included, and the faults.

    is_named: by the caller; a commands file that only lies in a folder is left out
    """
    found: list[_Placed] = []
    errors: list[ManifestError] = []
    try:
        if file.exists() and not file.is_file():
            raise YamlError("this is neither a file nor a folder", None)
        for source in read_documents(decode_text(file.read_bytes())):
            if not is_named and is_commands(source.data):
                return [], []
            placed, faults = _parse(file, source, namespace)
            found.append(placed)
            errors += faults
        if not found:
            raise YamlError("the file holds no document; write a TaskQueue or a CronTask", None)
    except YamlError as error:
        errors.append(ManifestError(error.reason, file=str(file), line=error.line))
    except OSError as error:
        errors.append(ManifestError(fault_of_system(error), file=str(file)))
    return found, errors


def _parse(file: Path, source: YamlDocument, ns: str) -> tuple[_Placed, list[ManifestError]]:
    errors = [
        ManifestError(
            fault.reason, file=str(file), line=source.line_of(fault.path), field=fault.field
        )
        for fault in source.faults
    ]
    parsed = None
    if source.is_cut:
        return _Placed(file, source, parsed, ns), errors
    try:
        parsed = parse_document(source.data, namespace=ns, file=str(file), line_of=source.line_of)
    except ManifestErrors as error:
        # What the YAML lost is not also missing from the model.
        told = {fault.field for fault in source.faults}
        errors += [found for found in error.errors if found.field not in told]
    return _Placed(file, source, None if errors else parsed, ns), errors


def decode_text(raw: bytes) -> str:
    """Raises YamlError."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise YamlError(f"not UTF-8 text: byte {error.start} of the file", line) from error


def fault_of_system(error: OSError) -> str:
    """Why a file cannot be read."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"cannot be read: {reason}"


def _repeated(documents: Sequence[_Placed]) -> list[ManifestError]:
    """Documents whose name is taken."""
    first: dict[tuple[str, tuple[str, str]], _Placed] = {}
    errors = []
    for document in documents:
        space, name = document.name
        if document.kind not in KINDS or not name:
            continue
        other = first.setdefault((document.kind, document.name), document)
        if other is not document:
            place = f"{other.file}:{other.source.line_of(('metadata', 'name'))}"
            reason = f"{document.kind} {space}/{name} is there already, in {place}; rename one"
            errors.append(document.error(reason, "metadata", "name"))
    return errors


def _same_uid(documents: Sequence[_Placed]) -> list[ManifestError]:
    """Documents whose uid is taken: a copy that kept the uid of its original."""
    first: dict[str, _Placed] = {}
    errors = []
    for document in documents:
        uid = document.text("metadata", "uid")
        other = first.setdefault(uid, document)
        if uid and other is not document:
            place = f"{other.file}:{other.source.line_of(('metadata', 'uid'))}"
            reason = f"is the uid of the document in {place} too; remove it here"
            errors.append(document.error(reason, "metadata", "uid"))
    return errors


def _stray(documents: Sequence[_Placed]) -> list[ManifestError]:
    """CronTasks whose queue is not among the documents."""
    queues = {document.name for document in documents if document.kind == "TaskQueue"}
    errors = []
    for document in documents:
        queue = document.text("spec", "queue")
        space = document.name[0]
        if document.kind != "CronTask" or not queue or (space, queue) in queues:
            continue
        known = sorted(name for owner, name in queues if owner == space and name)
        hint = suggestion(queue, known) if known else "there is none at all: add a TaskQueue"
        reason = f"no TaskQueue {queue!r} in namespace {space}; {hint}"
        errors.append(document.error(reason, "spec", "queue"))
    return errors


def _too_long(documents: Sequence[_Placed]) -> list[ManifestError]:
    """CronTasks whose timeout is above the hard timeout of their queue."""
    bounds = {
        document.parsed.queue_name: document.parsed.spec.hard_timeout_seconds
        for document in documents
        if isinstance(document.parsed, TaskQueue)
    }
    errors = []
    for document in documents:
        task = document.parsed
        if not isinstance(task, CronTask) or task.spec.timeout_seconds is None:
            continue
        bound = bounds.get(task.queue_name)
        if bound is not None and task.spec.timeout_seconds > bound:
            reason = (
                f"{task.spec.timeout_seconds} is above hardTimeoutSeconds of "
                f"TaskQueue {task.spec.queue}, which is {bound}"
            )
            errors.append(document.error(reason, "spec", "timeoutSeconds"))
    return errors
