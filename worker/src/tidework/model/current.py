"""The job that runs in this context, for its own code to look at and to speak of itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime

from tidework.errors import ConfigurationError
from tidework.model.lease import Lease
from tidework.model.progress import Key, Number, positions_text, progress_text

SAID_EVERY_S = 0.5
"""What a job says of itself leaves its process no more often."""
LONGEST_SENDING_S = 1.0
"""How long the last word waits for what a thread sends."""

Say = Callable[[bytes, bytes, bool], bool]
"""Takes texts of progress and positions (b'' = nothing new) to the worker, and never waits. False
if that cannot be done now; the last time (True) it always can."""

Later = Callable[[float, Callable[[], None]], None]
"""Calls a function after some seconds, in any thread."""


def call_later(seconds: float, function: Callable[[], None]) -> None:
    """By a thread that does nothing else; few jobs need one, and not often."""
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """deadline: when the hard timeout strikes, aware UTC. lease: what proves that it is ours.

    cancel_requested: somebody wants it cancelled; what goes on is killed soon
    """

    id: str
    task: str
    queue: str
    namespace: str
    attempt: int
    max_attempts: int
    deadline: datetime
    lease: Lease | None = field(default=None, repr=False)
    cancel_requested: bool = False


class RunningJob:
    """An attempt under way: what its code says, and what the worker asks of it.

    describe:  tells what it is
    interrupt: ends what it does, by an exception in it or as its kind has it; None: nothing to end
    loops:     checkpoints it is at: a cancel waits for the end of their item
    stopped:   it was told to end; interrupted: and its code has been;  over: it has ended
    positions: of its checkpoints; None while nobody has asked for those of earlier attempts
    """

    interrupt: Callable[[], None] | None = None
    loops = 0
    cancel_requested = False
    release_requested = False
    stopped = False
    interrupted = False
    over = False
    positions: dict[str, Key] | None = None
    names: frozenset[str] = frozenset()

    _progress: tuple[Number, Number | None, str] | None = None
    _moved = False
    _next_at = 0.0
    _waits = False
    _sending = threading.Lock()

    def __init__(
        self,
        describe: Callable[[RunningJob], CurrentJob],
        say: Say,
        later: Later = call_later,
    ) -> None:
        self._describe = describe
        self._say = say
        self._later = later

    def describe(self) -> CurrentJob:
        """What it is, now."""
        return self._describe(self)

    def cancel(self) -> None:
        """Somebody wants it cancelled. What interrupts it may raise that right here."""
        if not self.over:
            self.cancel_requested = self.stopped = True
            if not self.loops:
                self.stop()

    def stop(self) -> None:
        """It is to end now. As ``cancel``."""
        if self.over:
            return
        self.stopped = True
        if not self.interrupted and self.interrupt is not None:
            self.interrupted = True
            self.interrupt()

    def note_progress(self, done: Number, total: Number | None, note: str) -> None:
        """How far it is."""
        self._progress = (done, total, note)
        self._say_now_and_then()

    def note_position(self, name: str, key: Key) -> None:
        """A checkpoint has finished the item of this key."""
        assert self.positions is not None
        self.positions[name] = key
        self._moved = True
        self._say_now_and_then()

    def say_positions(self) -> None:
        """Tell where its checkpoints stand, if anywhere: and so that it has some."""
        self._moved = True
        self._next_at = 0.0
        self._say_now_and_then()

    def end(self) -> None:
        """Its code has ended: say what is left to say."""
        self.over = True
        self.interrupt = None
        if self._progress is not None or self._moved or self._sending.locked():
            self._say_all(last=True)

    def _say_now_and_then(self) -> None:
        if self.over:
            return  # a thread that the job left behind
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + SAID_EVERY_S
            if self._say_all(last=False):
                return
        if not self._waits:
            self._waits = True
            self._later(self._next_at - now, self._say_held)

    def _say_held(self) -> None:
        self._waits = False
        if self._progress is not None or self._moved:
            self._say_now_and_then()

    def _say_all(self, *, last: bool) -> bool:
        # Whoever has taken what there is to say has sent it before the last word is said. Nobody
        # waits for another else: the job may have forked while the lock was held, or this may be a
        # signal handler in the midst of it.
        until = time.monotonic() + LONGEST_SENDING_S
        while self._sending.locked():
            if not last:
                return False
            if time.monotonic() > until:
                return self._say_what_there_is(last=True)
            time.sleep(0.005)
        # Its own `with`: a soft timeout is raised between any other two steps.
        with self._sending:
            return self._say_what_there_is(last=last)

    def _say_what_there_is(self, *, last: bool) -> bool:
        said, moved = self._progress, self._moved
        self._progress, self._moved = None, False
        progress = b"" if said is None else progress_text(*said)
        positions = positions_text(self.positions or {}) if moved else b""
        if (not progress and not positions) or self._say(progress, positions, last):
            return True
        self._put_back(said, moved=moved)
        return False

    def _put_back(self, said: tuple[Number, Number | None, str] | None, *, moved: bool) -> None:
        """For the next time; a thread of the job may have said more meanwhile."""
        if self._progress is None:
            self._progress = said
        self._moved = self._moved or moved


running_job: ContextVar[CurrentJob | RunningJob | None] = ContextVar("running_job", default=None)


def current_job() -> CurrentJob:
    """The running job. Raises ConfigurationError outside of one."""
    found = running_job.get()
    if found is None:
        raise ConfigurationError("current_job() was called outside of a job")
    return found if isinstance(found, CurrentJob) else found.describe()
