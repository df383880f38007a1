"""How a command ended, and what that means for its job. Pure.

Exit codes are those of sysexits.h as far as a worker reads them: 0 is a success, 65 (EX_DATAERR) a
dead letter, 75 (EX_TEMPFAIL) another attempt at the command's own time. Any other end is a failed
attempt.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tidework.errors import EnvelopeError
from tidework.model.command import Command
from tidework.model.documents.strict_json import decode_json
from tidework.model.outcome import LONGEST_DELAY, RESULT_LIMIT, JobError, Outcome
from tidework.model.retry import RetryPolicy
from tidework.model.values.kept_result import refused_result
from tidework.worker.process import describe_exit

BURY_CODE = 65
RETRY_CODE = 75

_MEANINGS = {
    BURY_CODE: "EX_DATAERR",
    RETRY_CODE: "EX_TEMPFAIL",
    126: "in a shell: found, but not executable",
    127: "in a shell: command not found",
}
_COMPLAINT_LIMIT = 300
_TELLING = re.compile("error|exception|fatal|panic", re.IGNORECASE)


class CommandEnd(NamedTuple):
    """A command that has ended.

    code:      exit code, negative for a signal
    last_line: of stdout, None if there is none or if it was above RESULT_LIMIT
    unkept: bytes of a last line that was above it, else 0
    trace:     last lines of stderr, or of stdout if stderr was silent
    soft:      seconds after which it got SIGTERM for its soft timeout, None if it did not
    """

    code: int
    last_line: bytes | None
    trace: str
    soft: float | None = None
    unkept: int = 0


class Attempts(NamedTuple):
    """Which attempt it was, of how many; ``policy``: what comes after a failed one."""

    attempt: int
    most: int
    policy: RetryPolicy
    random: Callable[[], float]


def outcome_of(end: CommandEnd, attempts: Attempts) -> Outcome:
    """The Outcome of the attempt."""
    if end.code == 0:
        if end.unkept:
            return Outcome.complete(refused_result(_too_long(end.unkept)))
        return Outcome.complete(_result_in(end.last_line))
    error = JobError("CommandFailed", _message_of(end), end.trace, _cause_of(end))
    if end.code == BURY_CODE:
        return Outcome.bury(error)
    delay = _delay_in(end.last_line) if end.code == RETRY_CODE else None
    if delay is not None and attempts.attempt < attempts.most:
        return Outcome.retry(error, delay)
    return _failed(error, attempts)


def outcome_of_unstarted(command: Command, error: OSError, attempts: Attempts) -> Outcome:
    """The Outcome of an attempt whose command could not be started.

    A failed attempt, not a dead letter: in a rolling update the next worker may have it.
    """
    reason = f"the command {command} was not started: {_fault_of(command, error)}"
    return _failed(JobError("CommandFailed", reason, cause="not_started"), attempts)


def _failed(error: JobError, attempts: Attempts) -> Outcome:
    return attempts.policy.after_failure(error, attempts.attempt, attempts.most, attempts.random)


def _value_in(line: bytes | None) -> Any:
    """The JSON value that the line is; None if it is none."""
    if line is None:
        return None
    try:
        return decode_json(line.strip())
    except EnvelopeError:
        return None


def _too_long(size: int) -> str:
    return f"the last line of stdout has {size} bytes, a result may have {RESULT_LIMIT}"


def _result_in(line: bytes | None) -> bytes:
    return b"" if line is None or _value_in(line) is None else line.strip()


def _delay_in(line: bytes | None) -> timedelta | None:
    """What ``{"retry_after_seconds": 30}`` asks for; None if the line says something else."""
    value = _value_in(line)
    seconds = value.get("retry_after_seconds") if isinstance(value, Mapping) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return timedelta(seconds=min(seconds, LONGEST_DELAY.total_seconds()))


def _cause_of(end: CommandEnd) -> str:
    if end.soft is not None:
        return "soft_timeout"
    return "signal" if end.code < 0 else "exit"


def _message_of(end: CommandEnd) -> str:
    what = describe_exit(end.code) if end.code >= 0 else f"killed by {describe_exit(end.code)}"
    if end.soft is not None:
        what += f" after SIGTERM at the soft timeout of {end.soft:g} s"
    if meaning := _MEANINGS.get(end.code):
        what += f" ({meaning})"
    if end.code == -9:
        what += ", usually for lack of memory"
    complaint = _complaint_in(end.trace)
    if len(complaint) > _COMPLAINT_LIMIT:
        complaint = f"{complaint[:_COMPLAINT_LIMIT]}..."
    return f"{what}: {complaint}" if complaint else what


def _complaint_in(trace: str) -> str:
    """The line that says most: of a stack trace the last one beside it that speaks of an error."""
    lines = trace.splitlines()
    telling = [line for line in lines if _TELLING.search(line) and not line[0].isspace()]
    return (telling or lines or [""])[-1].strip()


def _fault_of(command: Command, error: OSError) -> str:
    """Why the system did not start it, and how to mend that."""
    program, folder = command.argv[0], Path(command.cwd).absolute()
    if not folder.is_dir():
        remedy = "create it, or correct cwd (workingDir in a commands file)"
        return f"its working directory {str(folder)!r} does not exist; {remedy}"
    if not os.access(folder, os.X_OK):
        return f"its working directory {str(folder)!r} may not be entered; give the worker access"
    if error.errno == errno.ENOENT and os.sep in program:
        if (folder / program).exists():
            return f"{program!r} exists, but the interpreter in its first line does not"
        return f"there is no file {str(folder / program)!r}"
    if error.errno == errno.ENOENT:
        return (
            f"{program!r} was not found on PATH; install it where the worker runs, "
            "or give its full path"
        )
    if error.errno == errno.EACCES:
        return f"{program!r} may not be executed; chmod +x, or name its interpreter: ['sh', ...]"
    if error.errno == errno.ENOEXEC:
        return f"{program!r} is not a program; begin it with #!/bin/sh, or name its interpreter"
    return f"{error.strerror or error}"
