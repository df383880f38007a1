"""What a queue keeps of a job's progress, as note_progress.lua writes it.

lease token SPACE sequence SPACE ms TAB progress TAB positions of checkpoints; the last two are JSON
or empty.
"""

from __future__ import annotations

from dataclasses import replace

from tidework.clock import from_ms
from tidework.model.backlog import JobRecord
from tidework.model.progress import Key, ProgressNote, read_positions, read_progress


def text_of(note: ProgressNote, now: int, before: bytes) -> bytes:
    """The text after a note, at ``now`` (ms), if ``before`` was there; that if the note is late."""
    progress, positions = note.progress, note.positions
    if before:
        head, said, stood = before.split(b"\t")
        token, last, _ = head.decode().split(" ")
        if token == note.token and int(last) >= note.sequence:
            return before
        progress, positions = progress or said, positions or stood
    head = f"{note.token} {note.sequence} {now}".encode()
    return b"\t".join((head, progress, positions))


def with_progress(record: JobRecord, text: bytes) -> JobRecord:
    """The record with what the text says. Raises ValueError for foreign bytes."""
    if not text:
        return record
    head, said, positions = text.split(b"\t")
    at = from_ms(int(head.rpartition(b" ")[2]))
    progress = read_progress(said, at) if said else None
    return replace(record, progress=progress, checkpoints=read_positions(positions))


def positions_in(text: bytes) -> dict[str, Key]:
    """Where checkpoints stand. Raises ValueError for foreign bytes."""
    return read_positions(text.split(b"\t")[2])
