"""One look for all listeners: the subjects that somebody listens to are read once a second.

A subject is read, compared and encoded once, however many listen. While nobody does, nothing is
read. A listener has room for a bounded number of events: one that is too slow loses them, and gets
the present state instead (`reset`), as does one that comes back after too long.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from tidework.api.events.subjects import Subject, without_volatile
from tidework.api.models.moments import moment_text
from tidework.clock import Clock, SystemClock
from tidework.errors import BrokerUnavailableError, TideworkError, TooManyListenersError
from tidework.loop import Loop

EVERY = timedelta(seconds=1)
MOST_LISTENERS = 1000
MOST_SUBJECTS = 1000
"""Different ones that are looked at each second."""
LONGEST = timedelta(minutes=15)
"""Then a stream ends: its client comes back, and is asked again who it is."""
MOST_WAITING = 50
"""Events that one listener may be behind."""
MOST_LOST = 1000
"""So many that were lost to it say that a listener is not there any more."""
MOST_KEPT = 1000
"""Events for those that come back."""

Look = Callable[[Subject], Awaitable[BaseModel]]


@dataclass(frozen=True, slots=True)
class Event:
    """kind: state (how the subject is now), change, reset (events were lost: how it is now),
    gone (it is not there any more), trouble and recovered (of Redis, with no subject)"""

    number: int | None
    kind: str
    subject: Subject | None
    data: str


@dataclass(slots=True)
class _Watched:
    """A subject that somebody listens to.

    since:      number of the last event before it was watched; what came in between nobody saw
    comparable: its data without what changes by itself
    """

    since: int = 0
    listeners: int = 0
    data: str = ""
    comparable: Any = None
    is_gone: bool = False


class Listener:
    """One client. It is told what its subjects are, then what becomes of them."""

    def __init__(self, subjects: tuple[Subject, ...]) -> None:
        self.subjects = subjects
        self.is_behind = False
        self._lost = 0
        self._events: deque[Event] = deque()
        self._news = asyncio.Event()
        self._is_over = False

    def put(self, event: Event) -> None:
        """Give it an event; with too many already, it has to start over."""
        if len(self._events) >= MOST_WAITING:
            self._events.clear()
            self.is_behind = True
        if self.is_behind:
            self._lost += 1
        else:
            self._events.append(event)
        self._news.set()

    @property
    def is_absent(self) -> bool:
        """Nobody has read anything for very long: the client went away without a word."""
        return self._lost > MOST_LOST

    def catch_up(self) -> bool:
        """Were events lost? From here on none is."""
        was_behind, self.is_behind, self._lost = self.is_behind, False, 0
        return was_behind

    def end(self) -> None:
        """There will be no more."""
        self._is_over = True
        self._news.set()

    async def wait(self) -> list[Event] | None:
        """The events that have come, [] if they were lost; None at the end."""
        while not (self._events or self.is_behind or self._is_over):
            self._news.clear()
            await self._news.wait()
        if self._is_over:
            return None
        found = list(self._events)
        self._events.clear()
        return found


class Hub:
    """All listeners of one application. look: reads a subject"""

    def __init__(self, look: Look, every: timedelta = EVERY, clock: Clock | None = None) -> None:
        self._look = look
        self._clock = clock or SystemClock()
        self._every = every
        self._life = secrets.token_hex(4)
        self._number = 0
        self._watched: dict[Subject, _Watched] = {}
        self._listeners: list[Listener] = []
        self._kept: deque[Event] = deque(maxlen=MOST_KEPT)
        self._trouble = ""
        self._loop: Loop | None = None
        self._running: asyncio.Task[None] | None = None

    def id_of(self, event: Event) -> str | None:
        """The id that a client names when it comes back: of this life of the process.

        Of several first states only the last one has it: who did not get that far starts over.
        """
        return None if event.number is None else f"{self._life}-{event.number}"

    async def join(self, subjects: Iterable[Subject]) -> Listener:
        """A new listener. Raises TooManyListenersError, and what a look at its subjects raises."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise TooManyListenersError(MOST_LISTENERS)
        listener = Listener(tuple(dict.fromkeys(subjects)))
        counted: list[Subject] = []
        try:
            for subject in listener.subjects:
                await self._watch(subject)
                counted.append(subject)
        except BaseException:
            self._release(counted)
            raise
        self._listeners.append(listener)
        self._start()
        return listener

    def leave(self, listener: Listener) -> None:
        """It has gone. The last one ends the looking."""
        if listener not in self._listeners:
            return
        self._listeners.remove(listener)
        self._release(listener.subjects)
        if not self._listeners and self._loop is not None:
            self._loop.stop()

    async def _watch(self, subject: Subject) -> None:
        """One more listens to it; the first one needs a look."""
        if subject not in self._watched:
            if len(self._watched) >= MOST_SUBJECTS:
                raise TooManyListenersError(MOST_LISTENERS)
            found, trouble = None, None
            try:
                found = await self._look(subject)
            except BrokerUnavailableError as error:
                trouble = error  # a browser comes back from a stream, and not from a refusal
            if subject not in self._watched:
                self._watched[subject] = watched = _Watched(self._number)
                if found is not None:
                    _set(watched, found)
            if trouble is not None:
                self._note_trouble(trouble)
        self._watched[subject].listeners += 1

    def _release(self, subjects: Iterable[Subject]) -> None:
        for subject in subjects:
            watched = self._watched[subject]
            watched.listeners -= 1
            if not watched.listeners:
                del self._watched[subject]

    def close(self) -> None:
        """The server ends: every stream does."""
        for listener in list(self._listeners):
            listener.end()

    async def events(self, listener: Listener, last_id: str | None = None) -> AsyncIterator[Event]:
        """What a listener is told, until it leaves or the server ends.

        last_id: of the last event that it had before it came back
        """
        over = asyncio.get_running_loop().call_later(LONGEST.total_seconds(), listener.end)
        try:
            found = self._missed(listener, last_id)
            if found is None:
                found = self._states(listener, "reset" if last_id else "state")
            for event in found:
                yield event
            while (news := await listener.wait()) is not None:
                for event in self._states(listener, "reset") if listener.catch_up() else news:
                    yield event
        finally:
            over.cancel()
            self.leave(listener)

    def _states(self, listener: Listener, kind: str) -> list[Event]:
        """How everything is that it listens to, and whether that can be known just now."""
        known = [(each, self._watched[each]) for each in listener.subjects]
        found = [
            Event(None, "gone" if watched.is_gone else kind, subject, watched.data)
            for subject, watched in known
            if watched.data
        ]
        if self._trouble:
            found.append(Event(None, "trouble", None, self._trouble))
        return [*found[:-1], *(replace(event, number=self._number) for event in found[-1:])]

    def _missed(self, listener: Listener, last_id: str | None) -> list[Event] | None:
        """What came since; None if that is not known any more."""
        life, _, number = (last_id or "").partition("-")
        if life != self._life or not number.isdecimal():
            return None
        last = int(number)
        oldest = (self._kept[0].number or 0) if self._kept else self._number + 1
        if last > self._number or last + 1 < oldest:
            return None
        if any(self._watched[subject].since > last for subject in listener.subjects):
            return None
        return [
            event
            for event in self._kept
            if (event.number or 0) > last
            and (event.subject is None or event.subject in listener.subjects)
        ]

    def _start(self) -> None:
        is_running = self._running is not None and not self._running.done()
        if is_running and self._loop is not None and not self._loop.is_stopping:
            return
        # Whatever goes wrong in one look is logged; listeners rely on the next one.
        self._loop = Loop("events", self._tick, tolerates=(Exception,))
        self._running = asyncio.create_task(self._loop.run(), name="events")

    async def _tick(self) -> timedelta:
        """One look at everything that somebody listens to."""
        for subject in list(self._watched):
            try:
                found = await self._look(subject)
            except BrokerUnavailableError as error:
                self._note_trouble(error)
                return self._every
            except TideworkError as error:
                self._note_gone(subject, error)
                continue
            self._note(subject, found)
        if self._trouble:
            self._trouble = ""
            self._tell("recovered", None, "{}")
        return self._every

    def _note(self, subject: Subject, found: BaseModel) -> None:
        watched = self._watched.get(subject)
        if watched is None:
            return  # its last listener left meanwhile
        before, was_gone = watched.comparable, watched.is_gone
        _set(watched, found)
        if was_gone or watched.comparable != before:
            self._tell("change", subject, watched.data)

    def _note_gone(self, subject: Subject, error: TideworkError) -> None:
        watched = self._watched.get(subject)
        if watched is None or watched.is_gone:
            return
        watched.is_gone = True
        watched.data = json.dumps({"detail": str(error)})
        self._tell("gone", subject, watched.data)

    def _note_trouble(self, error: BrokerUnavailableError) -> None:
        if not self._trouble:
            since = moment_text(self._clock.now())
            self._trouble = json.dumps({"detail": str(error), "since": since})
            self._tell("trouble", None, self._trouble)

    def _tell(self, kind: str, subject: Subject | None, data: str) -> None:
        self._number += 1
        event = Event(self._number, kind, subject, data)
        self._kept.append(event)
        for listener in list(self._listeners):
            if subject is None or subject in listener.subjects:
                listener.put(event)
                if listener.is_absent:
                    self.leave(listener)


def _set(watched: _Watched, found: BaseModel) -> None:
    watched.data = found.model_dump_json()
    watched.comparable = without_volatile(json.loads(watched.data))
    watched.is_gone = False
