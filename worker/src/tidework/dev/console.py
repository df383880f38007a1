"""What `tidework dev` tells: one event per line, for people or as JSON.

An event is a flat dict with ``ts`` and ``event``; ``render`` turns it into the line for people.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TextIO

from tidework.clock import Clock, SystemClock

Event = Mapping[str, Any]


class Console:
    """Writes events to a stream as they come."""

    def __init__(
        self, *, as_json: bool, stream: TextIO | None = None, clock: Clock | None = None
    ) -> None:
        self._as_json = as_json
        self._stream = stream or sys.stdout
        self._clock = clock or SystemClock()

    def tell(self, event: str, **fields: Any) -> None:
        """Write one event. A reader that went away is no reason to stop."""
        found = {
            "ts": self._clock.now().isoformat(timespec="milliseconds"),
            "event": event,
            **fields,
        }
        line = json.dumps(found, default=str) if self._as_json else render(found)
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            return


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _started(found: Event) -> str:
    queues = ", ".join(found["queues"]) or "none"
    crontasks = ", ".join(found["crontasks"]) or "none"
    return (
        f"up     API: {found['api_url']}; queues: {queues}; CronTasks: {crontasks}; "
        f"Redis: {found['redis_url']}"
    )


def _scaled(found: Event) -> str:
    return (
        f"scale  {found['queue']}: {found['before']} -> {_plural(found['after'], 'worker')}: "
        f"{found['reason']}"
    )


def _status(found: Event) -> str:
    parts = [f"{found[name]} {name}" for name in ("ready", "running", "scheduled") if found[name]]
    parts += [f"{found[name]} {name}" for name in ("succeeded", "dead", "cancelled") if found[name]]
    workers = _plural(found["workers"], "worker")
    return f"queue  {found['queue']}: {', '.join(parts) or 'empty'}; {workers}"


def _fired(found: Event) -> str:
    text = f"cron   {found['crontask']}: {found['verdict'].replace('_', ' ')} for {found['fire']}"
    return f"{text}, job {found['job_id']}" if found.get("job_id") else text


def _worker_exited(found: Event) -> str:
    text = f"worker {found['worker']} of {found['queue']} ended: {found['cause']}"
    return f"{text}; the next start is in {found['wait']:g} s" if found.get("wait") else text


_WORDING: dict[str, Callable[[Event], str]] = {
    "started": _started,
    "scaled": _scaled,
    "status": _status,
    "fired": _fired,
    "worker_exited": _worker_exited,
    "reloaded": lambda found: f"reload {found['what']}",
    "refused": lambda found: f"error  {found['error']}",
    "server_restarted": lambda found: f"redis  ended ({found['cause']}) and was started again",
    "server_down": lambda found: (
        f"redis  is down: {found['error']}; the next start is in {found['wait']:g} s"
    ),
    "draining": lambda found: (
        f"stop   {found['reason']}: {_plural(found['workers'], 'worker')} "
        "finish their jobs (again to release them at once)"
    ),
    "stopped": lambda found: f"down   {found['reason']}",
}


def render(found: Event) -> str:
    """The line for people, with the local time in front."""
    at = datetime.fromisoformat(found["ts"]).astimezone().strftime("%H:%M:%S")
    wording = _WORDING.get(found["event"])
    if wording is None:
        rest = {k: v for k, v in found.items() if k not in ("ts", "event")}
        return f"{at} {found['event']} {json.dumps(rest, default=str)}"
    return f"{at} {wording(found)}"
