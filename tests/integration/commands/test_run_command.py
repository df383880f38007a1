"""Commands that misbehave: whatever they do, they end, the child goes on, and nothing is left."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.processes import is_alive
from tests.support.logs import lines
from tests.support.waiting import wait_until
from tidework.model.command import Command
from tidework.model.retry import RetryPolicy
from tidework.model.values.kept_result import kept_result
from tidework.worker.child.command_end import Attempts, CommandEnd, outcome_of
from tidework.worker.child.command_output import LINE_LIMIT
from tidework.worker.child.command_run import run_command

PROGRAM = Path(__file__).with_name("program.py")


def run(*argv: str, document: bytes = b"{}\n", **options: Any) -> CommandEnd:
    return run_command(Command(argv, **options), os.environ, document)


def sh(script: str, **given: Any) -> CommandEnd:
    return run("sh", "-c", script, **given)


def python(code: str, **given: Any) -> CommandEnd:
    return run(sys.executable, "-c", textwrap.dedent(code), **given)


def in_own_process(script: str) -> dict[str, Any]:
    """What a script of program.py found."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"log": done.stderr}


def lines_of(caplog: pytest.LogCaptureFixture, stream: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if getattr(r, "stream", "") == stream]


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_both_streams_are_logged_by_lines_while_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    end = sh("echo one; echo problem >&2; printf 'two'")

    assert end == CommandEnd(0, b"two", "problem")
    assert lines_of(caplog, "stdout") == ["one", "two"]
    assert lines_of(caplog, "stderr") == ["problem"]
    levels = {r.levelname for r in caplog.records if getattr(r, "stream", "") == "stderr"}
    assert levels == {"WARNING"}


def test_a_line_is_logged_before_the_command_ends(tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    class Touch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "first":
                seen.touch()

    handler = Touch()
    logging.getLogger("tidework.command").addHandler(handler)
    try:
        end = sh(f"echo first; while [ ! -e {seen} ]; do sleep 0.01; done; echo second")
    finally:
        logging.getLogger("tidework.command").removeHandler(handler)

    assert end.last_line == b"second"


@pytest.mark.parametrize("code", [0, 1, 65, 75, 127, 255])
def test_its_exit_code_is_told(code: int) -> None:
    assert sh(f"exit {code}").code == code


def test_a_signal_is_told() -> None:
    assert sh("kill -SEGV $$").code == -11


def test_input_that_is_never_read_is_no_fault() -> None:
    large = b'{"params": "' + b"x" * (256 * 1024) + b'"}\n'

    assert sh("echo done", document=large) == CommandEnd(0, b"done", "done")


def test_input_that_is_closed_unread_while_it_goes_on_is_no_fault() -> None:
    large = b"x" * (4 * 1024 * 1024)

    assert sh("exec <&-; sleep 0.1; echo done", document=large).last_line == b"done"


def test_large_input_and_large_output_do_not_wait_for_each_other() -> None:
    large = b"x" * (1024 * 1024 - 1) + b"\n"

    end = run("cat", document=large, max_output=0)

    assert end.code == 0
    assert end.last_line == large.rstrip()


def test_the_input_ends() -> None:
    assert sh("cat >/dev/null; echo at the end").last_line == b"at the end"


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    end = sh(f"echo bye; exec >&- 2>&-; sleep 0.3; echo x >{mark}; exit 3")

    assert end == CommandEnd(3, b"bye", "bye")
    assert mark.exists()


def test_what_is_no_utf_8_is_shown_escaped(caplog: pytest.LogCaptureFixture) -> None:
    end = sh(r"printf 'gr\374n\n'; printf '\377\376\n' >&2; exit 1")

    assert lines_of(caplog, "stdout") == [r"gr\xfcn"]
    assert end.trace == r"\xff\xfe"


def test_a_long_line_is_cut_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    end = python("import sys; sys.stdout.write('x' * 10_000_000)")

    assert end.last_line is None, "it is longer than a result may be"
    (line,) = lines_of(caplog, "stdout")
    assert line == "x" * LINE_LIMIT + f" [... {10_000_000 - LINE_LIMIT} bytes left out ...]"
    outcome = outcome_of(end, Attempts(1, 3, RetryPolicy(), lambda: 0.0))
    refusal = kept_result(outcome.detail).refusal
    assert "has 10000000 bytes, a result may have" in refusal


def test_what_is_not_logged_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    end = sh("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done", max_output=100)

    assert end.last_line == b"line 499"
    assert end.trace.splitlines()[-3:] == ["line 497", "line 498", "line 499"]
    assert lines_of(caplog, "stdout") == [f"line {n}" for n in range(15)]
    assert len(lines(caplog, "command_output_cut")) == 1


def test_the_last_line_counts_though_blank_ones_follow_and_nothing_is_logged() -> None:
    script = "yes | head -n 100000; echo '{\"a\": 1}'; yes '' | head -n 100000"

    assert sh(script, max_output=0).last_line == b'{"a": 1}'


def test_floods_cost_no_memory() -> None:
    found = in_own_process(
        """
        run("true")
        before = peak_kib()
        lines = "yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c 104857600"
        found["lines"] = run("sh", "-c", lines)
        found["one line"] = run("sh", "-c", "head -c 104857600 /dev/zero; echo; echo end >&2")
        found["both"] = run("sh", "-c", f"{lines}; {lines} >&2; exit 1")[0]
        found["grown"] = peak_kib() - before
        """
    )

    assert found["lines"][0] == 0
    assert "0123456789abcdefghijklmnopqrstuvwxyz".startswith(found["lines"][1])
    assert found["one line"] == [0, "", "end"]
    assert found["both"] == 1
    assert found["grown"] < 16 * 1024
    assert len(found["log"]) < 5 * 1024 * 1024


def test_nothing_is_left_of_200_commands() -> None:
    found = in_own_process(
        """
        run("true")
        before = belongings()
        for number in range(200):
            left = "" if number % 20 else "sleep 60 & setsid sleep 60 &"
            assert run("sh", "-c", f"{left} echo {number}")[:2] == (0, str(number))
            fault = Command(("./not-there",)) if number % 50 == 0 else None
            if fault:
                try:
                    run_command(fault, os.environ, b"")
                except OSError:
                    pass
        found["same"] = (before, belongings())
        """
    )

    before, after = found["same"]
    assert after == before


SLEEPER = "echo $$ >{mark}; exec sleep 300"
DEAF = "trap true TERM HUP INT; echo $$ >{mark}; sleep 300; sleep 300"
GRANDCHILDREN = {
    "in the background": "sh -c '" + SLEEPER + "' &",
    "with its own session": "setsid sh -c '" + SLEEPER + "' &",
    "double-forked": "(setsid sh -c '" + SLEEPER + "' </dev/null >/dev/null 2>&1 &)",
    "deaf to signals": "(setsid sh -c '" + DEAF + "' &)",
}


@pytest.mark.parametrize("how", list(GRANDCHILDREN))
def test_what_it_leaves_in_the_background_is_killed(how: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    waiting = f"while [ ! -s {mark} ]; do sleep 0.01; done; echo ready"
    script = f"{GRANDCHILDREN[how].format(mark=mark)}\n{waiting}"

    found = in_own_process(
        f"""
        found["end"] = run("sh", "-c", {script!r})
        found["left"] = belongings()["children"]
        """
    )

    assert found["end"][:2] == [0, "ready"]
    assert found["left"] == 0
    assert not is_alive(int(mark.read_text()))


def test_what_ends_behind_its_back_leaves_no_zombie_while_it_runs() -> None:
    found = in_own_process(
        """
        script = '''
        i=0; while [ $i -lt 20 ]; do (setsid true &) ; i=$((i+1)); done
        parent=$PPID
        zombies() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z $parent "; }
        i=0; while [ $i -lt 500 ] && [ "$(zombies)" != 0 ]; do sleep 0.02; i=$((i+1)); done
        zombies
        '''
        found["end"] = run("sh", "-c", script)
        """
    )

    assert found["end"][1] == "0"


def test_other_processes_of_the_child_are_left_alone() -> None:
    found = in_own_process(
        """
        import subprocess
        own = subprocess.Popen(["sleep", "60"], start_new_session=True)
        found["end"] = run("sh", "-c", "sleep 300 & echo x")
        found["alive"] = own.poll() is None
        own.kill()
        own.wait()
        """
    )

    assert found["alive"]


def test_output_that_comes_by_way_of_another_program_is_waited_for() -> None:
    # The shell ends before what it writes through: as `exec > >(tee log)` of bash.
    script = """
    mkfifo pipe; ( (sleep 0.1; exec sed 's/^/seen: /') <pipe &) ; exec >pipe; echo last
    """

    found = in_own_process(
        f"""
        import tempfile
        from tidework.worker.child import command_run
        command_run.LINGER = 30.0
        with tempfile.TemporaryDirectory() as folder:
            found["end"] = run("sh", "-c", {script!r}, cwd=folder)
        """
    )

    assert found["end"][:2] == [0, "seen: last"]


def test_a_fault_of_ours_ends_it_all_the_same(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    class Broken(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            raise RuntimeError("no log today")

    handler = Broken()
    logging.getLogger("tidework.command").addHandler(handler)
    try:
        with pytest.raises(RuntimeError, match="no log today"):
            sh(f"trap true TERM; echo $$ >{mark}; echo line; sleep 300; sleep 300")
    finally:
        logging.getLogger("tidework.command").removeHandler(handler)

    assert not is_alive(int(mark.read_text()))


@pytest.mark.parametrize("how", ["its parent is killed", "SIGTERM"])
def test_all_of_it_ends_with_the_child(how: str, tmp_path: Path) -> None:
    marks = [tmp_path / name for name in "abc"]
    sleepers = [
        f"sh -c 'trap true TERM HUP; echo $$ >{mark}; sleep 300; sleep 300'" for mark in marks
    ]
    tree = f"setsid {sleepers[0]} & ({sleepers[1]} &); {sleepers[2]}; true"
    script = f"print(os.getpid(), flush=True); run('sh', '-c', {tree!r})"
    parent = (
        "import subprocess, sys; "
        f"subprocess.run([sys.executable, {str(PROGRAM)!r}, {script!r}], check=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        wait_until(lambda: all(mark.exists() and mark.read_text() for mark in marks), "all run")

        if how == "SIGTERM":
            os.kill(child, signal.SIGTERM)
        else:
            started.kill()
        started.wait()

    pids = [child, *(int(mark.read_text()) for mark in marks)]
    wait_until(lambda: not any(map(is_alive, pids)), "nothing of it is left")


def test_afterwards_our_own_end_is_as_it_was() -> None:
    found = in_own_process(
        """
        import ctypes, signal
        def death_signal():
            found = ctypes.c_int()
            ctypes.CDLL(None).prctl(2, ctypes.byref(found))
            return found.value
        ctypes.CDLL(None).prctl(1, 9)
        run("true")
        found["after"] = [death_signal(), signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]
        """
    )

    assert found["after"] == [9, True]


def test_it_has_no_descriptor_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        end = sh(f"[ -e /proc/$$/fd/{ours.fileno()} ] || echo closed")

    assert end.last_line == b"closed"


def test_it_ignores_no_signal_that_an_earlier_job_ignored() -> None:
    status = Path("/proc/self/status").read_text().splitlines()
    # SIGHUP under nohup, 32 and 33 of the C library. Python ignores two by itself.
    inherited = next(int(row.split()[1], 16) for row in status if row.startswith("SigIgn:"))
    inherited &= ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        end = sh("grep SigIgn /proc/$$/status; exit 3")
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    assert end.code == 3
    assert end.last_line is not None
    assert int(end.last_line.split()[1], 16) & ~inherited == 0


def test_it_leads_a_session_of_its_own() -> None:
    end = python("import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))")

    assert end.last_line == b"True"
