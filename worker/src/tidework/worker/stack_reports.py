"""Stack reports: what the supervisor, its template and all children do right now.

Asked for by SIGUSR1 or from outside (by the heartbeat). Every process writes its own stacks into a
file (stacks.py); here they are asked for, waited for, logged, and told to whoever asked. One that
has not come to the end of its text is asked in a way that it cannot overhear, and told as stuck.
Nothing is unbounded: neither the wait, nor the processes that are asked, nor the text.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tidework.clock import Clock
from tidework.loop import Loop
from tidework.worker import process, stacks
from tidework.worker.places.child_link import ChildLink
from tidework.worker.places.slots import SlotPool
from tidework.worker.template.keeper import TemplateKeeper

SIGNAL = signal.SIGUSR1
"""Has the supervisor make a report."""
ANSWER_WITHIN = 1.0
"""Seconds in which a process has to write its stacks; as long again, where it did not."""
MOST_CHILDREN = 64
MOST_BYTES = 196_608
"""Bytes of a report: all processes together."""
MOST_OF_ONE = 16_384
_LOOK_EVERY = 0.02
_LONG = timedelta(hours=1)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One process.

    file: a descriptor of ours; None = it is not asked, and ``note`` says why
    send: sends it a signal
    """

    told: Mapping[str, Any]
    pid: int | None
    file: int | None
    send: Callable[[signal.Signals], None] = lambda _: None
    note: str = ""

    @property
    def owes(self) -> bool:
        """Is the end of its text not there yet?"""
        return self.file is not None and not stacks.has_ended(self.file)


class StackReports:
    """Makes one report at a time; requests that come meanwhile share the next one.

    latest:   the last report as JSON data, None before the first
    on_ready: called when there is a new one
    """

    def __init__(self, pool: SlotPool, keeper: TemplateKeeper, clock: Clock) -> None:
        self.latest: Mapping[str, Any] | None = None
        self.on_ready: Callable[[], None] = lambda: None
        self._pool = pool
        self._keeper = keeper
        self._clock = clock
        self._wanted = False
        self._has_own = False
        self._own = stacks.open_file()
        self.loop = Loop("stack reports", self._tick)

    def answer_signal(self) -> None:
        """Have this process write its stacks at SIGUSR1; after the loop's handler was set."""
        stacks.answer(SIGNAL, self._own)

    def on_signal(self) -> None:
        """SIGUSR1 came: our own stacks, of the moment when it did, are written."""
        self._has_own = True
        self.ask()

    def ask(self) -> None:
        """Have a report made."""
        self._wanted = True
        self.loop.nudge()

    def close(self) -> None:
        """Write no more into the file, and give it back."""
        signal.signal(SIGNAL, signal.SIG_DFL)
        os.close(self._own)

    async def _tick(self) -> timedelta:
        if self._wanted:
            self._wanted = False
            self.latest = await self._report()
            stacks.empty(self._own)
            for found in self.latest["processes"]:
                logger.warning("stacks", extra={"event": "stacks_reported", **_fields(found)})
            self.on_ready()
        return _LONG

    async def _report(self) -> Mapping[str, Any]:
        asked = [self._ask_own(), self._ask_template(), *self._ask_children()]
        most = min(MOST_OF_ONE, MOST_BYTES // len(asked))
        try:
            for number in (stacks.ASK, stacks.INSIST):
                for found in asked:
                    if found.owes:
                        found.send(number)
                await self._wait_answers(asked)
            processes = [_read(found, most) for found in asked]
        finally:
            for found in asked:
                if found.file is not None:
                    os.close(found.file)
        return {
            "at": self._clock.now().timestamp(),
            "processes": processes,
            "left_out": max(0, len(self._pool.links()) - MOST_CHILDREN),
        }

    async def _wait_answers(self, asked: Sequence[_Asked]) -> None:
        deadline = self._clock.monotonic() + ANSWER_WITHIN
        while any(found.owes for found in asked):
            if self._clock.monotonic() >= deadline:
                return
            await asyncio.sleep(_LOOK_EVERY)

    def _ask_own(self) -> _Asked:
        if not self._has_own:
            stacks.empty(self._own)
            stacks.write(self._own)
        self._has_own = False
        return _Asked({"process": "supervisor", "pid": os.getpid()}, os.getpid(), os.dup(self._own))

    def _ask_template(self) -> _Asked:
        pid, file = self._keeper.pid, self._keeper.template_file
        told = {"process": "template", "pid": pid}
        if pid is None or file is None:
            return _Asked(told, None, None, note="it does not run")
        stacks.empty(file)
        return _Asked(told, pid, os.dup(file), partial(_ask_beginner, pid))

    def _ask_children(self) -> list[_Asked]:
        links = sorted(self._pool.links(), key=_busy_longest)
        return [self._ask_child(link) for link in links[:MOST_CHILDREN]]

    def _ask_child(self, link: ChildLink) -> _Asked:
        jobs = [
            {"id": job.id, "task": job.task}
            for job in link.jobs.values()
            if job.started_at is not None
        ]
        told = {"process": "child", "pid": link.pid, "slot": link.slot, "jobs": jobs[:100]}
        file = None if link.pid is None else self._keeper.file_of(link.pid)
        if not link.ready or file is None:
            return _Asked(told, link.pid, None, note="it has not said yet that it is ready")
        stacks.empty(file)
        return _Asked(told, link.pid, os.dup(file), link.send_signal)


def _ask_beginner(pid: int, number: signal.Signals) -> None:
    """Until a process has come so far that it answers, the signal would end it."""
    if process.catches(pid, number):
        # Ours to reap: the number is nobody else's.
        process.send_signal(pid, None, number)


def _read(found: _Asked, most: int) -> Mapping[str, Any]:
    if found.file is None or found.pid is None:
        return {**found.told, "stuck": found.note, "stacks": ""}
    text = stacks.read(found.file, most)
    if stacks.has_ended(found.file):
        return {**found.told, "stuck": "", "stacks": text.removesuffix(stacks.END)}
    return {**found.told, "stuck": _why(found.pid, text), "stacks": text}


def _fields(found: Mapping[str, Any]) -> dict[str, Any]:
    told = {"of": found["process"], "of_pid": found["pid"]}
    names = ("slot", "jobs", "stuck", "stacks")
    return told | {name: found[name] for name in names if found.get(name) not in (None, "", [])}


def _busy_longest(link: ChildLink) -> tuple[bool, float]:
    started = [job.started_at for job in link.jobs.values() if job.started_at is not None]
    return not started, min(started, default=0.0)


def _why(pid: int, text: str) -> str:
    """What keeps a process from the end of its text."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        state = ""
    match state:
        case "T" | "t":
            return "it is stopped (SIGSTOP, or a debugger)"
        case "D":
            return "it waits in the kernel and cannot be interrupted (a disk, a network's files)"
        case "Z" | "X":
            return "it has just ended"
    if text:
        return (
            f"no Python code has run in it for {2 * ANSWER_WITHIN:g} s: a C call does not release "
            "the interpreter, or waits for ever; see its first lines"
        )
    return (
        f"it has not answered within {2 * ANSWER_WITHIN:g} s: it gets no time to run, or a task "
        "took SIGUSR1 for itself"
    )
