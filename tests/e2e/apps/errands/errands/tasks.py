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
    return {"text": text, **place()}


@app.task
def note(seconds: float = 0.0) -> dict[str, str]:
    """Write down the start, take so many seconds, write down the end."""
    write_down("started")
    time.sleep(seconds)
    write_down("ended")
    return place()


@app.task
def linger(seconds: float) -> dict[str, str]:
    """As `note`, but only the first run of the job takes its time."""
    job = current_job().id
    is_first = all(entry["job"] != job for entry in _read())
    write_down("started")
    time.sleep(seconds if is_first else 0)
    write_down("ended")
    return place()


@app.task
def crash() -> None:
    """End the process as a fault in native code does."""
    write_down("started")
    os.kill(os.getpid(), signal.SIGSEGV)


def journal_key(namespace: str) -> str:
    """One journal for each namespace."""
    return f"e2e:{namespace}:journal"


def place() -> dict[str, str]:
    """Which pod of which edition this is."""
    return {
        "pod": os.environ.get("POD_NAME", ""),
        "edition": os.environ.get("EDITION", "first"),
    }


def write_down(what: str) -> None:
    """An entry about the current job."""
    entry = {"what": what, "job": current_job().id, **place()}
    _store().rpush(journal_key(current_job().namespace), json.dumps(entry))


def _read() -> list[dict[str, Any]]:
    raw: Any = _store().lrange(journal_key(current_job().namespace), 0, -1)
    return [json.loads(entry) for entry in raw]


@cache
def _store() -> redis.Redis:
    return redis.Redis.from_url(os.environ["TIDEWORK_REDIS_URL"])
