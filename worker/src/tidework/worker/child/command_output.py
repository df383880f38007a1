"""What a command writes: logged line by line while it runs, its last lines kept.

All of it is bounded, whatever the command does: a line is cut when it is logged, a run's log has a
limit in bytes, after which lines are only read, and of a line without an end no more is held than a
result may have. Bytes that are no UTF-8 are shown as \\xff.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

LINE_LIMIT = 8192
"""Bytes of a line that are logged; container runtimes split lines above 16 KiB."""
KEPT_LINES = 50
"""Lines kept of each stream, for the error of a failed attempt."""

logger = logging.getLogger("tidework.command")


class Allowance:
    """How many bytes more of a command's output are logged, of both streams together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit
        self._is_told = False

    @property
    def is_used_up(self) -> bool:
        """Is nothing logged any more?"""
        return self._is_told

    def take(self, size: int) -> bool:
        """May a line of ``size`` bytes be logged? The first refusal is told in the log."""
        if size <= self._left and not self._is_told:
            self._left -= size
            return True
        if not self._is_told:
            self._is_told = True
            text = "the command writes more than %d bytes: the rest of its output is not logged"
            logger.warning(text, self._limit, extra={"event": "command_output_cut"})
        return False


class OutputStream:
    """One of the two streams of a command.

    name:      for the log; level: of its lines there
    keep:      bytes of a line that are held until its end comes
    last_line: the last one that is not blank, None if there is none or if it was longer
    last_size: its length in bytes
    """

    def __init__(self, name: str, level: int, allowance: Allowance, keep: int) -> None:
        self.last_line: bytes | None = None
        self.last_size = 0
        self._level = level
        self._extra = {"event": "command_output", "stream": name}
        self._allowance = allowance
        self._keep = keep
        self._line = bytearray()
        self._left_out = 0
        self._kept: deque[str] = deque(maxlen=KEPT_LINES)

    @property
    def tail(self) -> str:
        """The last lines, as they were or would have been logged."""
        return "\n".join(self._kept)

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        *ended, begun = self._worth_reading(data.split(b"\n"))
        for piece in ended:
            self._append(piece)
            self._end_line()
        self._append(begun)

    def close(self) -> None:
        """The stream is at its end: so is its last line."""
        self._end_line()

    def _worth_reading(self, pieces: list[bytes]) -> Sequence[bytes]:
        """No blank lines, and once nothing is logged any more only the last of a flood."""
        if len(pieces) < 3:
            return pieces
        first, *whole, begun = pieces
        written = [piece for piece in whole if piece.strip()]
        if not self._allowance.is_used_up or len(written) < KEPT_LINES:
            return [first, *written, begun]
        self._clear()
        return [*written[-KEPT_LINES:], begun]

    def _append(self, piece: bytes) -> None:
        room = self._keep - len(self._line)
        self._line += piece[:room]
        self._left_out += max(0, len(piece) - room)

    def _end_line(self) -> None:
        line = bytes(self._line)
        size = len(line) + self._left_out
        if line.strip():
            self.last_line = None if self._left_out else line
            self.last_size = size
            shown = _shown(line, size)
            self._kept.append(shown)
            if self._allowance.take(min(size, LINE_LIMIT)):
                logger.log(self._level, "%s", shown, extra=self._extra)
        self._clear()

    def _clear(self) -> None:
        self._line.clear()
        self._left_out = 0


def _shown(line: bytes, size: int) -> str:
    text = line[:LINE_LIMIT].decode("utf-8", "backslashreplace").rstrip("\r")
    cut = size - LINE_LIMIT
    return text if cut <= 0 else f"{text} [... {cut} bytes left out ...]"
