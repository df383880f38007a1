"""One document, as JSON data, into its model. The only door, for files and for the cluster alike.

Nulls count as absent, as the API server prunes them (but not within params, where null is data).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from tidework.errors import ManifestError
from tidework.manifests.crontask import CronTask
from tidework.manifests.faults import Fault, FieldPath, ManifestErrors, faults_of, suggestion
from tidework.manifests.metadata import API_VERSION, stable_uid
from tidework.manifests.taskqueue import TaskQueue

KINDS: Mapping[str, type[TaskQueue | CronTask]] = {
    "TaskQueue": TaskQueue,
    "CronTask": CronTask,
}

_DATA = ("spec", "params")


def parse_document(
    document: Any,
    *,
    namespace: str = "default",
    file: str = "document",
    line_of: Callable[[FieldPath], int | None] = lambda _path: None,
) -> TaskQueue | CronTask:
    """The model of a document.

    namespace: for a document without one; file, line_of: say where a fault lies.
    Raises ManifestErrors with every fault of the document.
    """
    found = _parse(document, namespace)
    if isinstance(found, list):
        raise ManifestErrors(
            [
                ManifestError(fault.reason, file=file, line=line_of(fault.path), field=fault.field)
                for fault in found
            ]
        )
    return found


def _parse(document: Any, namespace: str) -> TaskQueue | CronTask | list[Fault]:
    if not isinstance(document, Mapping):
        return [Fault((), "a document has to be a mapping with apiVersion, kind, metadata, spec")]
    faults = _head_faults(document)
    if faults:
        return faults
    model = KINDS[document["kind"]]
    given = _pruned(document, ())
    if isinstance(given.get("metadata"), dict):
        given["metadata"] = {"namespace": namespace} | given["metadata"]
    given.pop("status", None)
    try:
        parsed = model.model_validate_json(json.dumps(given))
    except ValidationError as error:
        return faults_of(error, model)
    metadata = parsed.metadata
    if metadata.uid:
        return parsed
    uid = stable_uid(parsed.kind, metadata.namespace, metadata.name)
    return parsed.model_copy(update={"metadata": metadata.model_copy(update={"uid": uid})})


def is_commands(document: Any) -> bool:
    """Is it what a commands file holds? See commands_file.py."""
    return isinstance(document, dict) and "commands" in document and "apiVersion" not in document


def _head_faults(document: Mapping[Any, Any]) -> list[Fault]:
    """Without the right head nothing else of the document can be judged."""
    if is_commands(document):
        reason = "this is a commands file: name it as the app of a TaskQueue, or of tidework worker"
        return [Fault((), reason)]
    faults = []
    version, kind = document.get("apiVersion"), document.get("kind")
    if version != API_VERSION:
        found = "is missing" if version is None else f"{version!r} is not served"
        faults.append(Fault(("apiVersion",), f"{found}; use {API_VERSION}"))
    if not isinstance(kind, str) or kind not in KINDS:
        found = "is missing" if kind is None else f"{kind!r} is not served"
        faults.append(Fault(("kind",), f"{found}; {suggestion(str(kind), KINDS)}"))
    return faults


def _pruned(found: Any, path: FieldPath) -> Any:
    """A copy without nulls."""
    if path == _DATA:
        return found
    if isinstance(found, Mapping):
        kept = {key: value for key, value in found.items() if value is not None}
        return {key: _pruned(value, (*path, key)) for key, value in kept.items()}
    if isinstance(found, list):
        return [_pruned(value, (*path, place)) for place, value in enumerate(found)]
    return found
