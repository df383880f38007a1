"""Documents for tests, as JSON data and as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidework.manifests import CronTask, ManifestErrors, TaskQueue, parse_document, read_manifests

VERSION = "tidework.dev/v1alpha1"

QUEUE = """\
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata:
  name: emails
spec:
  app: shop.tasks
"""

CRON = """\
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata:
  name: nightly
spec:
  queue: emails
  task: send
  schedule: "0 6 * * *"
"""


def queue(**spec: Any) -> TaskQueue:
    """A TaskQueue with these fields, as documents write them."""
    parsed = parse_document(
        {
            "apiVersion": VERSION,
            "kind": "TaskQueue",
            "metadata": {"name": "emails"},
            "spec": {"app": "shop.tasks"} | spec,
        }
    )
    assert isinstance(parsed, TaskQueue)
    return parsed


def crontask(*, name: str = "nightly", **spec: Any) -> CronTask:
    """A CronTask with these fields, as documents write them; every 5 m unless they say when."""
    when = {} if {"schedule", "schedules", "every", "at"} & spec.keys() else {"every": "5m"}
    parsed = parse_document(
        {
            "apiVersion": VERSION,
            "kind": "CronTask",
            "metadata": {"name": name},
            "spec": {"queue": "emails", "task": "send"} | when | spec,
        }
    )
    assert isinstance(parsed, CronTask)
    return parsed


def faults_in(folder: Path, text: str, *more: str) -> list[str]:
    """What is wrong with files of these texts, as ``line: field: reason`` (``file:`` before it if
    there are several)."""
    texts = (text, *more)
    for place, content in enumerate(texts):
        (folder / f"{place}.yaml").write_text(content)
    try:
        read_manifests([folder])
    except ManifestErrors as error:
        prefix = f"{folder}/" if more else f"{folder}/0.yaml:"
        return [str(found).removeprefix(prefix).strip() for found in error.errors]
    return []
