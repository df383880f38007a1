"""Tasks whose effects can be looked at from outside: each writes into a journal in Redis.

The journal is a list beside Tidework's own keys (journal_key), one JSON object per entry: `what`
happened to the `job`, in which `pod`, of which `edition` of this application.
"""

from __future__ import annotations

import json
import os
import signal
import time
from functools import cache
from typing import Any

import redis

from tidework import Tidework, current_job

app = Tidework("errands", queue="errands")


@app.task
def echo(text: str) -> dict[str, str]:
    """Give the text back."""
    return {"text": text, **_place()}


@app.task
def note(seconds: float = 0.0) -> dict[str, str]:
    """Write down the start, take so many seconds, write down the end."""
    _write("started")
    time.sleep(seconds)
    _write("ended")
    return _place()


@app.task
def linger(seconds: float) -> dict[str, str]:
    """As `note`, but only the first run of the job takes its time."""
    job = current_job().id
    is_first = all(entry["job"] != job for entry in _read())
    _write("started")
    time.sleep(seconds if is_first else 0)
    _write("ended")
    return _place()


@app.task
def crash() -> None:
    """End the process as a fault in native code does."""
    _write("started")
    os.kill(os.getpid(), signal.SIGSEGV)


def journal_key(namespace: str) -> str:
    """One journal for each namespace."""
    return f"e2e:{namespace}:journal"


def _place() -> dict[str, str]:
    return {
        "pod": os.environ.get("POD_NAME", ""),
        "edition": os.environ.get("EDITION", "first"),
    }


def _write(what: str) -> None:
    entry = {"what": what, "job": current_job().id, **_place()}
    _store().rpush(journal_key(current_job().namespace), json.dumps(entry))


def _read() -> list[dict[str, Any]]:
    raw: Any = _store().lrange(journal_key(current_job().namespace), 0, -1)
    return [json.loads(entry) for entry in raw]


@cache
def _store() -> redis.Redis:
    return redis.Redis.from_url(os.environ["TIDEWORK_REDIS_URL"])
