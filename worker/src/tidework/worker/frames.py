"""Frames: what travels between the supervisor and its processes.

A frame is a 4-byte big-endian length and a payload. Between supervisor and child the payload is
a packed head whose first byte is its kind, then raw bytes (an envelope, a result): the supervisor
never re-encodes a job. Between supervisor and template the payload is one JSON object.
Times are seconds of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from tidework.model.outcome import Outcome, OutcomeKind
from tidework.model.progress import check_texts

MAX_FRAME = 64 * 1024 * 1024
PERMIT = struct.Struct(">I")
"""A permit is the number of a job that was sent ahead: who reads it from the pipe owns the job."""

_LENGTH = struct.Struct(">I")
_JOB = struct.Struct(">I?HIIdHH")  # ...timeout, releases, length of the token
_STARTED = struct.Struct(">cId")
_ENDED = struct.Struct(">cIcdd")
_SAID = struct.Struct(">cII")  # ...number, length of the progress
_ORDER = struct.Struct(">IcI")  # 0 where a job has its number, kind, number
_READY = b"H"
_ALIVE = b"A"
_WORN = b"W"
_STOP = b"C"
_CANCEL = b"N"
_RELEASE = b"B"
_PING = b"P"
_COMPLETE = Outcome.complete()
_KINDS = {kind.value.encode(): kind for kind in OutcomeKind}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}


class FrameError(Exception):
    """The bytes are no frame of ours: the process at the other end is broken."""


class JobFrame(NamedTuple):
    """A job on its way into a child.

    number:  counts the frames of this child, from 1
    ahead:   sent while another job was in the child: it may start only with its permit
    queue:   index into the worker's queues
    attempt, max_attempts: of this run; timeout: seconds; body: the envelope
    token:   of the lease; releases: how often it was released before
    """

    number: int
    ahead: bool
    queue: int
    attempt: int
    max_attempts: int
    timeout: float
    body: bytes
    token: str = ""
    releases: int = 0

    def encode(self) -> bytes:
        """The frame with its length."""
        number, ahead, queue, attempt, most, timeout, body, text, releases = self
        token = text.encode()
        size = len(token)
        head = _JOB.pack(number, ahead, queue, attempt, most, timeout, min(releases, 0xFFFF), size)
        return b"".join((_LENGTH.pack(_JOB.size + size + len(body)), head, token, body))

    @classmethod
    def decode(cls, payload: bytes) -> JobFrame:
        """Read a payload. Raises FrameError."""
        try:
            head = _JOB.unpack_from(payload)
            number, ahead, queue, attempt, most, timeout, releases, size = head
            token = payload[_JOB.size : _JOB.size + size].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise FrameError(
                f"a job frame of {len(payload)} bytes is too short or broken"
            ) from error
        body = payload[_JOB.size + size :]
        return cls(number, ahead, queue, attempt, most, timeout, body, token, releases)


@dataclass(frozen=True, slots=True)
class Stop:
    """An order: the job of this number is to end now."""

    number: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """An order: somebody has the job of this number cancelled; it may end its item."""

    number: int


@dataclass(frozen=True, slots=True)
class Release:
    """An order: the job of this number is to end after its item, since the worker leaves."""

    number: int


@dataclass(frozen=True, slots=True)
class Ping:
    """An order to a child with an event loop: say that the loop turns."""


_ORDERS: Mapping[bytes, type[Stop | Cancel | Release]] = {
    _STOP: Stop,
    _CANCEL: Cancel,
    _RELEASE: Release,
}
_LETTERS_OF_ORDERS = {order: letter for letter, order in _ORDERS.items()}
JobOrder = Stop | Cancel | Release
Order = JobFrame | JobOrder | Ping


@dataclass(frozen=True, slots=True)
class Ready:
    """The child waits for its first job."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The child's loop turns."""


class Started(NamedTuple):
    """The child is about to call the task. ``at``: monotonic seconds."""

    number: int
    at: float


class Ended(NamedTuple):
    """The attempt is over after ``seconds``."""

    number: int
    outcome: Outcome
    seconds: float


class Said(NamedTuple):
    """What the job says of itself (model/progress.py); b'' = nothing new."""

    number: int
    progress: bytes
    positions: bytes


class Worn(NamedTuple):
    """The child begins no more jobs: what its jobs left cannot be put right. ``why``: in words."""

    why: str


Report = Ready | Alive | Started | Ended | Said | Worn


def order_frame(order: JobOrder) -> bytes:
    """The frame of an order about one job."""
    return _LENGTH.pack(_ORDER.size) + _ORDER.pack(0, _LETTERS_OF_ORDERS[type(order)], order.number)


def ping_frame() -> bytes:
    """The frame of Ping."""
    return _LENGTH.pack(_ORDER.size) + _ORDER.pack(0, _PING, 0)


def decode_order(payload: bytes) -> Order:
    """Read what a child is told. Raises FrameError."""
    if payload[:4] != b"\0\0\0\0":
        return JobFrame.decode(payload)
    try:
        _, kind, number = _ORDER.unpack(payload)
    except struct.error as error:
        raise FrameError(f"an order of {len(payload)} bytes") from error
    if kind == _PING:
        return Ping()
    if (order := _ORDERS.get(kind)) is not None:
        return order(number)
    raise FrameError(f"an order of unknown kind {kind!r}")


def ready_frame() -> bytes:
    """The frame of Ready."""
    return _LENGTH.pack(1) + _READY


def alive_frame() -> bytes:
    """The frame of Alive."""
    return _LENGTH.pack(1) + _ALIVE


def worn_frame(why: str) -> bytes:
    """The frame of Worn."""
    text = why.encode(errors="backslashreplace")
    return _LENGTH.pack(1 + len(text)) + _WORN + text


def started_frame(number: int, at: float) -> bytes:
    """The frame of Started."""
    return _LENGTH.pack(_STARTED.size) + _STARTED.pack(b"S", number, at)


def ended_frame(number: int, outcome: Outcome, seconds: float) -> bytes:
    """The frame of Ended."""
    delay = outcome.delay.total_seconds() if outcome.delay else 0.0
    head = _ENDED.pack(b"E", number, _LETTERS[outcome.kind], delay, seconds)
    return b"".join((_LENGTH.pack(_ENDED.size + len(outcome.detail)), head, outcome.detail))


def said_frame(number: int, progress: bytes, positions: bytes) -> bytes:
    """The frame of Said."""
    head = _SAID.pack(b"P", number, len(progress))
    size = _SAID.size + len(progress) + len(positions)
    return b"".join((_LENGTH.pack(size), head, progress, positions))


def decode_report(payload: bytes) -> Report:
    """Read what a child reports. Raises FrameError."""
    kind = payload[:1]
    try:
        if kind == b"S":
            _, number, at = _STARTED.unpack(payload)
            return Started(number, at)
        if kind == b"E":
            _, number, letter, delay, seconds = _ENDED.unpack_from(payload)
            if letter == b"c" and len(payload) == _ENDED.size:
                return Ended(number, _COMPLETE, seconds)
            outcome = Outcome(_KINDS[letter], payload[_ENDED.size :], timedelta(seconds=delay))
            return Ended(number, outcome, seconds)
        if kind == b"P":
            _, number, size = _SAID.unpack_from(payload)
            texts = payload[_SAID.size : _SAID.size + size], payload[_SAID.size + size :]
            check_texts(*texts)
            return Said(number, *texts)
        if kind == _WORN:
            return Worn(payload[1:].decode())
    except (struct.error, KeyError, ValueError, OverflowError) as error:
        raise FrameError(f"a report that cannot be read: {error}") from error
    if kind == _READY:
        return Ready()
    if kind == _ALIVE:
        return Alive()
    raise FrameError(f"a report of unknown kind {kind!r}")


def document_frame(document: Mapping[str, Any]) -> bytes:
    """A JSON object as a frame, for the template's control socket."""
    payload = json.dumps(document, separators=(",", ":")).encode()
    return _LENGTH.pack(len(payload)) + payload


class FrameBuffer:
    """Cuts a stream of bytes into payloads."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._have = 0
        self._need = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that ``data`` completes. Raises FrameError for an absurd length."""
        if self._rest:
            self._rest.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = b"".join(self._rest)
            self._rest = []
        found = []
        start, size = 0, len(data)
        self._need = 4
        while size - start >= 4:
            (length,) = _LENGTH.unpack_from(data, start)
            if length > MAX_FRAME:
                raise FrameError(f"a frame of {length} bytes, the limit is {MAX_FRAME}")
            end = start + 4 + length
            if end > size:
                self._need = 4 + length
                break
            found.append(data[start + 4 : end])
            start = end
        if start < size:
            self._rest = [data[start:]]
            self._have = size - start
        return found
