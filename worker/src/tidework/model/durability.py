"""Durability: what has to hold before a change of a queue counts as stored.

``async`` answers once the primary has it in memory (and, by its own settings, in its file a
moment later), ``replica`` once one replica has it as well, ``fsync`` once the primary's
append-only file is on disk. The words are those of the queue's document.
"""

from __future__ import annotations

from enum import StrEnum


class Durability(StrEnum):
    """What a write waits for, weakest first."""

    ASYNC = "async"
    REPLICA = "replica"
    FSYNC = "fsync"
