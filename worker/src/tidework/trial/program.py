"""The trial as a program: imports an application, checks jobs against it, tells what it found.

One line of JSON comes in on standard input, one goes out on standard output. What the application
prints goes to standard error. When standard input ends, whoever asked is gone, and so are we.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidework.app import Tidework
from tidework.app_loading import load_app
from tidework.errors import AppImportError, ConfigurationError, ParamsError
from tidework.meant import did_you_mean, listed
from tidework.model.command import COMMANDS_SUFFIXES
from tidework.trial.sources import sources_below


def main() -> None:
    """Ends the process, whatever the application has started in it."""
    asked, answer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    request = json.loads(asked.readline())
    threading.Thread(target=lambda: (asked.read(), os._exit(1)), daemon=True).start()
    found = _try_out(request)
    answer.write(json.dumps(found).encode() + b"\n")
    answer.flush()
    sys.stderr.flush()
    os._exit(0)


def _try_out(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        app = load_app(request["app"])
    except (ConfigurationError, KeyboardInterrupt) as error:
        return {"error": str(error), "is_certain": _is_certain(error)}
    return {
        "queues": {name: task.spec.queue for name, task in app.tasks.items()},
        "needs_slots": [name for name, task in app.tasks.items() if not task.is_async],
        "faults": [_fault_of(app, job["task"], job["params"]) for job in request["jobs"]],
        "sources": _sources_of(request["app"]),
    }


def _sources_of(app: str) -> list[str]:
    if app.endswith(COMMANDS_SUFFIXES):
        return [str(Path(app).resolve())]
    return sorted(sources_below(Path.cwd()))


def _is_certain(error: BaseException) -> bool:
    """Is it a fault everywhere? Modules and variables that are missing here may be in the image."""
    if not isinstance(error, AppImportError):
        return True
    cause = error.__cause__
    return error.is_typo or cause is None or isinstance(cause, (SyntaxError, ConfigurationError))


def _fault_of(app: Tidework, task: str, params: Mapping[str, Any]) -> dict[str, str] | None:
    """What keeps a job from running; ``field``: of it."""
    found = app.tasks.get(task)
    if found is None:
        names = sorted(app.tasks)
        meant = did_you_mean(task, names)
        reason = f"the application has no task {task!r}{meant or ';'} it has: {listed(names)}"
        return {"field": "task", "reason": reason}
    try:
        found.signature.to_arguments(params)
    except ParamsError as error:
        return {"field": "params", "reason": f"task {task!r} does not take them: {error.reason}"}
    return None


if __name__ == "__main__":
    main()
