"""Names: queues, jobs, workers. Each is checked once, here."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from typing import NamedTuple, Self

from tidework.errors import ConfigurationError

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_TASK_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,199}")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32, lower case
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def is_dns_label(text: str) -> bool:
    """RFC 1123 label: what Kubernetes allows as the name of a namespace or TaskQueue."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_job_id(text: str) -> bool:
    """1 to 128 characters of A-Z a-z 0-9 _ . : - starting with a letter or digit."""
    return _JOB_ID.fullmatch(text) is not None


def is_task_name(text: str) -> bool:
    """1 to 200 characters of A-Z a-z 0-9 _ . : / - starting with a letter or underscore."""
    return _TASK_NAME.fullmatch(text) is not None


class _Parts(NamedTuple):
    namespace: str
    name: str


class QueueName(_Parts):
    """A queue within a namespace; both parts are DNS labels. Raises ConfigurationError."""

    __slots__ = ()

    def __new__(cls, namespace: str, name: str) -> Self:
        for part, text in (("namespace", namespace), ("queue", name)):
            if not is_dns_label(text):
                raise ConfigurationError(
                    f"{part} {text!r} is not a DNS label: use at most 63 characters of "
                    "a-z, 0-9 and '-', starting and ending with a letter or digit"
                )
        return super().__new__(cls, namespace, name)

    @classmethod
    def parse(cls, text: str) -> QueueName:
        """Read ``namespace/name``, as the registry stores it."""
        namespace, _, name = text.partition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _IdSource:
    """Time-ordered ids: 48 bits of milliseconds, then 80 random bits that count up within one.

    A signal handler may raise between any two steps, or take an id itself: where we stand is one
    value, replaced at once, if nobody else replaced it meanwhile.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the past: a forked child must not count on where its parent stood."""
        self._lock = threading.RLock()
        self._last = (0, 0, "")

    def take(self) -> str:
        with self._lock:
            while True:
                before = self._last
                ms, tail, head = before
                now = time.time_ns() // 1_000_000
                if now > ms:
                    tail = int.from_bytes(os.urandom(10), "big") >> 1
                    head = _all_but_two(now, tail)
                    last = (now, tail, head)
                else:
                    tail += 1
                    if not tail & 1023:
                        head = _all_but_two(ms, tail)
                    last = (ms, tail, head)
                if self._last is before:
                    self._last = last
                    return head + _PAIRS[tail & 1023]


def _all_but_two(ms: int, tail: int) -> str:
    value = ms << 70 | tail >> 10
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(110, -1, -10)])


_ids = _IdSource()
os.register_at_fork(after_in_child=_ids.reset)


new_job_id = _ids.take
"""A new id of 26 characters (the layout of a ULID): ids sort by the time they were made."""


def new_incarnation(worker: str) -> str:
    """The name of one life of a worker process; a restarted worker is another incarnation."""
    return f"{worker}.{secrets.token_hex(4)}"
