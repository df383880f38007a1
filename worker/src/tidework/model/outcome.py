"""How an attempt ends: complete, retry, release, bury; and a loss, when nobody could say.

An Outcome is a value that travels from the slot to the exchange script. ``detail`` is JSON bytes:
the result of a complete, else an error document ``{"type", "message", "trace", "cause"}``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

ERROR_TEXT_LIMIT = 16_384


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
    cause:   exception | timeout | memory | signal | exit | invalid | unknown_task | poison | ...
    """

    type: str
    message: str
    trace: str = ""
    cause: str = "exception"

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


def _shorten(text: str) -> str:
    if len(text) <= ERROR_TEXT_LIMIT:
        return text
    half = ERROR_TEXT_LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one attempt. ``delay`` counts for retry and release."""

    kind: OutcomeKind
    detail: bytes = b""
    delay: timedelta = timedelta(0)

    @classmethod
    def complete(cls, result: bytes = b"") -> Outcome:
        """Succeeded; ``result`` is JSON, empty for null."""
        return cls(OutcomeKind.COMPLETE, result)

    @classmethod
    def retry(cls, error: JobError, delay: timedelta) -> Outcome:
        """Failed; run again after ``delay``."""
        return cls(OutcomeKind.RETRY, error.encode(), delay)

    @classmethod
    def release(cls, delay: timedelta = timedelta(0)) -> Outcome:
        """Given back uncounted."""
        return cls(OutcomeKind.RELEASE, b"", delay)

    @classmethod
    def bury(cls, error: JobError) -> Outcome:
        """Dead letter."""
        return cls(OutcomeKind.BURY, error.encode())

    @classmethod
    def loss(cls, error: JobError) -> Outcome:
        """The child died under the started job: counts towards the poison cap."""
        return cls(OutcomeKind.LOSS, error.encode())

    @classmethod
    def cancelled(cls) -> Outcome:
        """Stopped because its cancellation was requested."""
        return cls(OutcomeKind.CANCELLED)
