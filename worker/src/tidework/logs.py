"""Logs: JSON lines for machines, short lines for people.

Fields travel as ``extra={...}``; the job that runs in this context (set by the child) adds its
id, task, queue, attempt to every line, the application's own included.
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

from tidework.settings import LogFormat, LogLevel

job_fields: ContextVar[Mapping[str, Any] | None] = ContextVar("job_fields", default=None)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found = dict(job_fields.get() or {})
    found.update({k: v for k, v in vars(record).items() if k not in _STANDARD})
    return found


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, event, logger, pid, the constant and own fields."""

    def __init__(self, constant: Mapping[str, Any]) -> None:
        super().__init__()
        self._constant = dict(constant)

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            "pid": os.getpid(),
        }
        line |= self._constant | _fields(record)
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class HumanFormatter(logging.Formatter):
    """``12:00:01 info    the event  key=value``"""

    def __init__(self, constant: Mapping[str, Any]) -> None:
        super().__init__()
        self._constant = dict(constant)

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = self._constant | _fields(record)
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
