"""Logs: JSON lines for machines, short lines for people.

Fields travel as ``extra={...}``; the job that runs in this context (set by the child) adds its
id, task, queue, attempt to every line, the application's own included. One name per idea: FIELDS.
What a line of Tidework tells is its field ``event``, one of log_events.EVENTS.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from tidework.log_events import EVENTS
from tidework.model.identity import QueueName
from tidework.settings import LogFormat, LogLevel

job_fields: ContextVar[Mapping[str, Any] | None] = ContextVar("job_fields", default=None)

FIELDS: Mapping[str, str] = {
    "event": "what the line tells: one of the events below",
    "job_id": "id of the job",
    "task": "name of its task",
    "queue": "name of the queue",
    "namespace": "namespace of the queue, where a process serves several",
    "attempt": "number of the attempt, from 1",
    "run_seconds": "seconds that the attempt ran; none if it had not begun",
    "delay_seconds": "seconds until the job runs again",
    "cause": "why a job or a child ended",
    "error": "what was raised or refused",
    "losses": "deliveries of the job that were lost",
    "crontask": "name of the CronTask",
    "fire": "nominal time of the fire",
    "verdict": "what became of the fire: enqueued, skipped, missed",
    "term": "term of the lead over the queue",
    "worker": "name of the worker",
    "incarnation": "which life of the worker, as its presence says it",
    "slot": "number of the slot",
    "child": "process id of the child",
    "reason": "why a child is replaced, or a person acts",
    "jobs": "the jobs that a process has, task and id of each",
    "running": "how many jobs have begun in it",
    "of": "the process whose stacks these are",
    "of_pid": "its process id",
    "stuck": "what keeps it from answering",
    "stacks": "stacks of threads and tasks",
    "stream": "stdout or stderr of a command",
    "peers": "addresses of connections that the application opened at import",
    "changed": "what a job left changed in its process",
    "threads": "threads that the application started at import",
    "tasks": "how many tasks the application has",
    "queues": "queues that the worker serves",
    "slots": "how many slots the worker has",
    "async_slots": "how many async slots it has instead",
    "host": "address of the probes",
    "port": "port of the probes",
    "by": "whose act",
    "via": "how the caller proved who it is",
    "act": "the operation of the HTTP API",
    "target": "path that an act was for",
    "status": "HTTP status of the answer",
    "replica": "name of the operator's replica",
    "cluster": "address of the API server",
}
"""Every field that Tidework adds to a line, and what it says."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


UNKNOWN_TASK = "(unknown)"
"""Stands in fields and series for a task that the application does not have: they stay bounded."""


def queue_fields(queue: QueueName) -> dict[str, str]:
    """The fields that name a queue."""
    return {"queue": queue.name, "namespace": queue.namespace}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found = dict(job_fields.get() or {})
    found.update({k: v for k, v in vars(record).items() if k not in _STANDARD})
    return found


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, message, logger, pid, the constant and own fields."""

    def __init__(self, constant: Mapping[str, Any]) -> None:
        super().__init__()
        self._constant = dict(constant)

    def format(self, record: logging.LogRecord) -> str:
        fields = self._constant | _fields(record)
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        if "event" in fields:  # in front of what it is about
            line["event"] = fields["event"]
        line |= {"message": record.getMessage(), "logger": record.name, "pid": os.getpid()}
        line |= fields
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class HumanFormatter(logging.Formatter):
    """``12:00:01 info    the message  key=value``, without our events: the message says it."""

    def __init__(self, constant: Mapping[str, Any]) -> None:
        super().__init__()
        self._constant = dict(constant)

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = self._constant | _fields(record)
        if str(fields.get("event")) in EVENTS:
            del fields["event"]
        tail = "".join(f" {name}={value}" for name, value in fields.items())
        line = f"{at} {record.levelname.lower():<7} {record.getMessage()}"
        if tail:
            line += f" {tail}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def configure_logs(
    log_format: LogFormat = "auto", level: LogLevel = "info", **constant: object
) -> None:
    """Send all logs to standard error, once per process. ``auto``: human on a terminal.

    ``constant`` fields (worker, pod...) are part of every line.
    """
    human = log_format == "human" or (log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HumanFormatter(constant) if human else JsonFormatter(constant))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
