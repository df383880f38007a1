"""What an end of a command means for its job, and the words for a command that did not start."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path

import pytest

from tidework.model.command import Command
from tidework.model.outcome import LONGEST_DELAY, JobError, Outcome, OutcomeKind
from tidework.model.retry import RetryPolicy
from tidework.worker.child.command_end import Attempts, CommandEnd, outcome_of, outcome_of_unstarted

POLICY = RetryPolicy(max_attempts=3, delays=(timedelta(seconds=7),), jitter=0)


def attempts(attempt: int = 1) -> Attempts:
    return Attempts(attempt, 3, POLICY, lambda: 0.0)


def outcome(code: int, last: bytes | None = None, trace: str = "", attempt: int = 1) -> Outcome:
    return outcome_of(CommandEnd(code, last, trace), attempts(attempt))


def error_of(found: Outcome) -> JobError:
    return JobError.decode(found.detail)


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b'{"sent": 3}', b'{"sent": 3}'),
        (b" [1, 2]\r", b"[1, 2]"),
        (b'"text"', b'"text"'),
        (b"42", b"42"),
        (b"-1.5", b"-1.5"),
        (b"true", b"true"),
        (b"false", b"false"),
        (b"0", b"0"),
        (b"18446744073709551617", b"18446744073709551617"),
        (b"null", b""),
        (b"done", b""),
        (b"NaN", b""),
        (b'{"a": 1, "a": 2}', b""),
        (b"{broken", b""),
        (b"\xff\xfe", b""),
        (b"[" * 5000, b""),
        (None, b""),
    ],
    ids=str,
)
def test_a_success_has_the_last_line_as_its_result_if_it_is_json(
    line: bytes | None, result: bytes
) -> None:
    assert outcome(0, line) == Outcome.complete(result)


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        (1, "exit code 1: no such address", "exit"),
        (3, "exit code 3: no such address", "exit"),
        (75, "exit code 75 (EX_TEMPFAIL): no such address", "exit"),
        (126, "exit code 126 (in a shell: found, but not executable): no such address", "exit"),
        (127, "exit code 127 (in a shell: command not found): no such address", "exit"),
        (-11, "killed by signal 11 (SIGSEGV): no such address", "signal"),
        (
            -9,
            "killed by signal 9 (SIGKILL), usually for lack of memory: no such address",
            "signal",
        ),
        (-60, "killed by signal 60: no such address", "signal"),
    ],
)
def test_any_other_end_is_a_failed_attempt(code: int, message: str, cause: str) -> None:
    found = outcome(code, trace="Sending...\nno such address")

    assert (found.kind, found.delay) == (OutcomeKind.RETRY, timedelta(seconds=7))
    error = error_of(found)
    assert (error.type, error.message, error.cause) == ("CommandFailed", message, cause)
    assert error.trace == "Sending...\nno such address"
    assert outcome(code, attempt=3).kind is OutcomeKind.BURY


def test_silence_and_long_complaints_are_told_as_well() -> None:
    assert error_of(outcome(1)).message == "exit code 1"
    assert error_of(outcome(1, trace="x" * 5000)).message == f"exit code 1: {'x' * 300}..."


PYTHON = """\
Traceback (most recent call last):
  File "/app/report.py", line 3, in <module>
    raise ValueError("no such address")
ValueError: no such address"""
PHP = """\
PHP Fatal error:  Uncaught RuntimeException: no connection in /app/report.php:3
Stack trace:
#0 {main}
  thrown in /app/report.php on line 3"""
NODE = """\
/app/report.mjs:3
throw new TypeError("no such address");
^

TypeError: no such address
    at file:///app/report.mjs:3:7
    at async handleMainError (node:internal/modules/esm:1:2)

Node.js v20.20.2"""


@pytest.mark.parametrize(
    ("trace", "complaint"),
    [
        (PYTHON, "ValueError: no such address"),
        (
            PHP,
            "PHP Fatal error:  Uncaught RuntimeException: no connection in /app/report.php:3",
        ),
        (NODE, "TypeError: no such address"),
        ("sh: 1: foo: not found", "sh: 1: foo: not found"),
        ("first\nlast  ", "last"),
        ("\n", ""),
    ],
    ids=["python", "php", "node", "sh", "last", "blank"],
)
def test_of_a_stack_trace_the_line_that_says_most_is_in_the_message(
    trace: str, complaint: str
) -> None:
    message = error_of(outcome(1, trace=trace)).message

    assert message == (f"exit code 1: {complaint}" if complaint else "exit code 1")


def test_equal_faults_have_equal_fingerprints() -> None:
    def of(trace: str, code: int = 1) -> str:
        return error_of(outcome(code, trace=trace)).fingerprint

    assert of("no page 3 of 'a'") == of("no page 4 of 'b'")
    assert of("no page 3") != of("no such address")
    assert of("killed", -11) != of("killed", 1)


def test_65_is_a_dead_letter_at_once() -> None:
    found = outcome(65, trace="no such address")

    assert found.kind is OutcomeKind.BURY
    assert error_of(found).message == "exit code 65 (EX_DATAERR): no such address"


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (b'{"retry_after_seconds": 30}', 30),
        (b'{"retry_after_seconds": 0.5, "why": "busy"}', 0.5),
        (b'{"retry_after_seconds": 0}', 0),
        (b'{"retry_after_seconds": 1e300}', LONGEST_DELAY.total_seconds()),
        (b'{"retry_after_seconds": -1}', 7),
        (b'{"retry_after_seconds": true}', 7),
        (b'{"retry_after_seconds": "30"}', 7),
        (b'{"retry_after_seconds": null}', 7),
        (b"30", 7),
        (b"later", 7),
        (None, 7),
    ],
)
def test_75_is_another_attempt_at_the_commands_own_time(line: bytes | None, seconds: float) -> None:
    found = outcome(75, line)

    assert (found.kind, found.delay) == (OutcomeKind.RETRY, timedelta(seconds=seconds))
    assert outcome(75, line, attempt=3).kind is OutcomeKind.BURY, (
        "attempts are bounded all the same"
    )


@pytest.mark.parametrize("code", [0, 1])
def test_only_75_reads_a_time(code: int) -> None:
    assert outcome(code, b'{"retry_after_seconds": 30}').delay != timedelta(seconds=30)


def unstarted(command: Command, number: int) -> str:
    found = outcome_of_unstarted(command, OSError(number, os.strerror(number)), attempts())
    error = error_of(found)
    assert found.kind is OutcomeKind.RETRY
    assert (error.type, error.cause) == ("CommandFailed", "not_started")
    return error.message


def test_a_command_that_does_not_start_says_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/nowhere/php\n")
    here = str(tmp_path)

    def reason(program: str, number: int, cwd: str = here) -> str:
        return unstarted(Command((program,), cwd), number)

    assert "'php' was not found on PATH; install it" in reason("php", errno.ENOENT)
    assert f"there is no file '{here}/run'" in reason("./run", errno.ENOENT)
    assert "the interpreter in its first line does not" in reason("./script", errno.ENOENT)
    assert "chmod +x" in reason("./script", errno.EACCES)
    assert "begin it with #!/bin/sh" in reason("./script", errno.ENOEXEC)
    assert f"'{here}/none' does not exist; create it, or correct cwd (workingDir" in reason(
        "php", errno.ENOENT, f"{here}/none"
    )
    assert "Argument list too long" in reason("php", errno.E2BIG)
