"""Output of commands: however it is cut on its way, the same lines are kept and logged."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Self

from hypothesis import given
from hypothesis import strategies as st

from tidework.worker.child.command_output import KEPT_LINES, Allowance, OutputStream

KEEP = 40
LINE = st.one_of(
    st.sampled_from([b"", b" ", b"\r", b"line", b"x" * KEEP, b"y" * (KEEP + 1), b"\xff\xfe"]),
    st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"")),
)
RUN = st.tuples(LINE, st.sampled_from([1, 2, KEPT_LINES - 1, KEPT_LINES, KEPT_LINES + 1]))
LINES = st.lists(RUN, max_size=6).map(lambda runs: [line for line, n in runs for _ in range(n)])


class Caught(logging.Handler):
    """What the log gets while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "stream"):
            self.lines.append(record.getMessage())

    def __enter__(self) -> Self:
        logging.getLogger("tidework.command").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("tidework.command").removeHandler(self)


def shown(line: bytes) -> str:
    return line[:KEEP].decode("utf-8", "backslashreplace").rstrip("\r")


def expected(lines: list[bytes]) -> tuple[bytes | None, int, list[str]]:
    """The last line, its size, and those kept, of lines that all have their end."""
    written = [line for line in lines if line[:KEEP].strip()]
    last = written[-1] if written else b""
    return (
        last if written and len(last) <= KEEP else None,
        len(last),
        [shown(line) for line in written[-KEPT_LINES:]],
    )


@given(
    lines=LINES,
    cuts=st.lists(st.integers(0, 4000), max_size=12),
    limit=st.sampled_from([0, 30, 10**6]),
    ends=st.booleans(),
)
def test_the_same_is_kept_however_it_comes(
    lines: list[bytes], cuts: list[int], limit: int, ends: bool
) -> None:
    whole = b"\n".join(lines) + (b"\n" if ends else b"")
    allowance = Allowance(limit)
    stream = OutputStream("stdout", logging.WARNING, allowance, KEEP)

    with Caught() as caught:
        places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
        for start, end in pairwise(places):
            stream.feed(whole[start:end])
        stream.close()

    last_line, last_size, kept = expected(lines)
    assert (stream.last_line, stream.last_size) == (last_line, last_size)
    assert stream.tail.split("\n") == (kept or [""])
    written = [line for line in lines if line[:KEEP].strip()]
    room, logged = limit, []
    for line in written:
        if len(line) > room:
            break
        room -= len(line)
        logged.append(shown(line))
    assert caught.lines == logged
