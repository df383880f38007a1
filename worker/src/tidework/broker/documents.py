"""Documents of an inbox, before and after somebody has validated them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tidework.model.job import Job
from tidework.model.outcome import JobError

MARKER = b"!"
"""The one-byte document that only wakes a worker."""


MAX_DOCUMENT_BYTES = 1024 * 1024
"""A longer document of the inbox is refused, and only its beginning is read. Four times the bound
of params, since escapes and indentation are the writer's business."""
BEGINNING_BYTES = 4096
"""So many are kept of one that is too long (as in fragments/large.lua)."""
MOST_BYTES = 4 * MAX_DOCUMENT_BYTES
"""Bytes of the documents that come at once."""


class Beginning(bytes):
    """The first bytes of a document that is longer than MAX_DOCUMENT_BYTES.

    length: of the whole, in bytes
    """

    length: int

    def __new__(cls, raw: bytes, length: int) -> Self:
        found = super().__new__(cls, raw)
        found.length = length
        return found


def hand_out(raw: bytes) -> bytes:
    """A document as it leaves the store: whole, or the beginning of a large one."""
    if len(raw) <= MAX_DOCUMENT_BYTES:
        return raw
    return Beginning(raw[:BEGINNING_BYTES], len(raw))


def length_of(raw: bytes) -> int:
    """Bytes of the whole document."""
    return raw.length if isinstance(raw, Beginning) else len(raw)


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """An inbox document that did not validate: it becomes a dead letter.

    id:    made up for it; named: the one that the document names, '' if it names none. The letter
           gets that one if nobody has it.
    """

    raw: bytes
    id: str
    error: JobError
    named: str = ""


@dataclass(frozen=True, slots=True)
class AcceptedDocument:
    """An inbox document that did validate. ``body`` is what is stored: ``raw``, or with an id.

    named: does the document name the job's id itself?
    """

    raw: bytes
    job: Job
    body: bytes
    named: bool
