"""How an attempt ends: complete, retry, release, bury; and a loss, when nobody could say.

An Outcome is a value that travels from the slot to the exchange script. ``detail`` is JSON bytes:
the result of a complete, else an error document ``{"type", "message", "trace", "cause"}``; of a
release and a cancel its reason in words.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any

RESULT_LIMIT = 1024 * 1024
"""Bytes of JSON."""
LONGEST_DELAY = timedelta(days=3660)
"""Of an attempt that a task asks for. Due times beyond what a datetime holds could not be read."""
ERROR_TEXT_LIMIT = 16_384
CAUSE_LIMIT = 200
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]")
_OF_SCRIPTS = frozenset({"lost", "unique", "unknown_task"})
_FRAME = re.compile(r'File "(?:[^"]*/)?([^"/]+)", line \d+, in (\S+)')
# Numbers, hex and quoted values: what differs between two cases of one fault.
_VARYING = re.compile(
    r"""'[^']*'|"[^"]*"|\b(?:0x)?[0-9a-f]*\d[0-9a-f-]*(?:\.\d+)?\b""", re.IGNORECASE
)


class OutcomeKind(StrEnum):
    """The letter is what goes over the wire to exchange.lua."""

    COMPLETE = "c"
    RETRY = "r"
    RELEASE = "l"
    BURY = "b"
    LOSS = "x"
    CANCELLED = "n"


@dataclass(frozen=True, slots=True)
class JobError:
    """An error as data: never rebuilt into an exception.

    type:    name of the exception's class, or a word of ours (Timeout, WorkerLost...)
    message: its text
    trace:   formatted traceback, may be empty
    cause:   exception | timeout | soft_timeout | memory | signal | exit | not_started | invalid |
             unknown_task | poison | ...
    """

    type: str
    message: str
    trace: str = ""
    cause: str = "exception"

    @property
    def fingerprint(self) -> str:
        """What equal faults have in common: the type, and a hash of where it was raised.

        Of the traceback's files and functions (not its lines, which move with every change), or
        of the message without its numbers where there is no traceback. Errors that scripts write
        have the type alone.
        """
        kind = _NOT_IN_NAMES.sub("_", self.type)[:64] or "Error"
        if self.cause in _OF_SCRIPTS:
            return kind
        frames = _FRAME.findall(_shorten(self.trace))
        place = frames or _VARYING.sub("#", _shorten(self.message))
        digest = sha256(json.dumps([self.cause, place]).encode()).hexdigest()
        return f"{kind}-{digest[:8]}"

    def encode(self) -> bytes:
        """JSON bytes; over-long texts lose their middle."""
        document = {"type": self.type, "message": _shorten(self.message), "cause": self.cause}
        if self.trace:
            document["trace"] = _shorten(self.trace)
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> JobError:
        """Read what ``encode`` or a script wrote."""
        found: dict[str, Any] = json.loads(raw)
        return cls(
            type=str(found.get("type", "Error")),
            message=str(found.get("message", "")),
            trace=str(found.get("trace", "")),
            cause=str(found.get("cause", "exception")),
        )


def _utf8(text: str) -> bytes:
    """Half a surrogate pair, as in a file's name that is no UTF-8, has no bytes: ``\\udce9``."""
    return text.encode(errors="backslashreplace")


def _shorten(text: str) -> str:
    if not text.isascii():
        text = _utf8(text).decode()
    if len(text) <= ERROR_TEXT_LIMIT:
        return text
    half = ERROR_TEXT_LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one attempt. ``delay`` counts for retry and release.

    unknown_for: of a release because no such task is known here: how long the job may wait for a
                 worker that knows it
    """

    kind: OutcomeKind
    detail: bytes = b""
    delay: timedelta = timedelta(0)
    unknown_for: timedelta | None = None

    @classmethod
    def complete(cls, result: bytes = b"") -> Outcome:
        """Succeeded; ``result`` is JSON, empty for null."""
        return cls(OutcomeKind.COMPLETE, result)

    @classmethod
    def retry(cls, error: JobError, delay: timedelta) -> Outcome:
        """Failed; run again after ``delay``."""
        return cls(OutcomeKind.RETRY, error.encode(), delay)

    @classmethod
    def release(cls, delay: timedelta = timedelta(0), reason: str = "") -> Outcome:
        """The job runs again, and this attempt does not count."""
        return cls(OutcomeKind.RELEASE, _utf8(reason), delay)

    @classmethod
    def release_unknown(cls, delay: timedelta, unknown_for: timedelta, reason: str) -> Outcome:
        """The same, for a worker that knows the task; due before the wait is over."""
        kind = OutcomeKind.RELEASE
        return cls(kind, _utf8(reason), min(delay, unknown_for), unknown_for)

    @classmethod
    def bury(cls, error: JobError) -> Outcome:
        """Dead letter."""
        return cls(OutcomeKind.BURY, error.encode())

    @classmethod
    def loss(cls, error: JobError) -> Outcome:
        """The child died under the started job: counts towards the poison cap."""
        return cls(OutcomeKind.LOSS, error.encode())

    @classmethod
    def cancelled(cls, reason: str = "") -> Outcome:
        """Stopped because its cancellation was requested; ``reason``: how it ended."""
        return cls(OutcomeKind.CANCELLED, _utf8(reason))

    @property
    def cause(self) -> str:
        """Why the attempt ended so, in one line for the history of its job; empty for a success."""
        if self.kind is OutcomeKind.COMPLETE:
            return ""
        if self.kind in (OutcomeKind.RELEASE, OutcomeKind.CANCELLED):
            return _one_line(self.detail.decode())
        error = JobError.decode(self.detail)
        return _one_line(f"{error.cause}: {error.type}: {error.message}")


def _one_line(text: str) -> str:
    return " ".join(text[:CAUSE_LIMIT].split())
