"""The roster: the workers of some queues, by what they say of themselves, and what is asked of one.

Everything here goes through Redis: nobody has to reach the workers. What their documents say is
read with care: they may be of another version, or no Python program at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from tidework.broker.answers import CordonAnswer, UncordonAnswer
from tidework.broker.broker import Broker
from tidework.errors import NoAnswerError, WorkerNotFoundError
from tidework.model.backlog import Cordon, Presence, StacksAnswer
from tidework.model.identity import QueueName

LOOK_EVERY_S = 0.25
"""How often an answer is looked for."""

Sleep = Callable[[float], Awaitable[None]]


class WorkerState(StrEnum):
    """What a worker is at. Of several that hold, the last one here is told."""

    WORKING = "working"
    PAUSED = "paused"
    CORDONED = "cordoned"
    DRAINING = "draining"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """One worker.

    queues:   that it serves, among those of the roster
    presence: the latest of these
    cordon:   who keeps it from claiming, in any of them
    """

    incarnation: str
    queues: tuple[QueueName, ...]
    presence: Presence
    cordon: Cordon

    @property
    def name(self) -> str:
        """As it was started; in a cluster its pod's."""
        return self.incarnation.rpartition(".")[0] or self.incarnation

    @property
    def document(self) -> Mapping[str, Any]:
        """What it says of itself; every field may be absent."""
        return self.presence.document

    @property
    def state(self) -> WorkerState:
        """What it is at."""
        if self.presence.is_stale:
            return WorkerState.STALE
        if self.document.get("draining"):
            return WorkerState.DRAINING
        if self.cordon:
            return WorkerState.CORDONED
        return WorkerState.PAUSED if self.document.get("paused") else WorkerState.WORKING

    @property
    def remark(self) -> str:
        """What the state means, '' if there is nothing to say."""
        match self.state:
            case WorkerState.STALE:
                return (
                    f"not seen for {in_words(self.presence.silent_for)}: it died, stands still or "
                    "does not reach Redis; its jobs run again elsewhere"
                )
            case WorkerState.DRAINING:
                return "it ends after its running jobs"
            case WorkerState.CORDONED:
                return f"by {_by_whom(self.cordon)}: it claims nothing"
            case WorkerState.PAUSED:
                return "one of its queues is paused"
        return ""


def in_words(span: timedelta) -> str:
    """``45 s``, ``3 min``, ``2 h``."""
    seconds = int(span.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def _by_whom(cordon: Cordon) -> str:
    people = {Cordon.PERSON: "a person", Cordon.AUTOSCALER: "the autoscaler"}
    return " and ".join(words for who, words in people.items() if who in cordon)


class Roster:
    """Workers of ``queues``."""

    def __init__(self, broker: Broker, queues: Sequence[QueueName]) -> None:
        self._broker = broker
        self._queues = queues

    async def entries(self) -> tuple[WorkerEntry, ...]:
        """All workers, by incarnation."""
        found: dict[str, list[tuple[QueueName, Presence]]] = {}
        for queue in self._queues:
            for presence in await self._broker.workers(queue):
                found.setdefault(presence.incarnation, []).append((queue, presence))
        return tuple(_entry(name, found[name]) for name in sorted(found))

    async def find(self, name: str) -> WorkerEntry:
        """By incarnation, or by name if one worker of it lives. Raises WorkerNotFoundError."""
        entries = await self.entries()
        for entry in entries:
            if entry.incarnation == name:
                return entry
        named = [entry for entry in entries if entry.name == name]
        living = [entry for entry in named if not entry.presence.is_stale] or named
        if len(living) == 1:
            return living[0]
        known = [entry.incarnation for entry in living or entries]
        raise WorkerNotFoundError(name, tuple(known), several=bool(living))

    async def cordon(self, entry: WorkerEntry) -> CordonAnswer:
        """Have it claim nothing more, from any of its queues. Raises WorkerNotFoundError."""
        answers = [await self._broker.cordon(q, entry.incarnation) for q in entry.queues]
        known = [answer for answer in answers if answer is not None]
        if not known:
            raise WorkerNotFoundError(entry.incarnation)
        return CordonAnswer(
            sum(answer.leases for answer in known), before=all(answer.before for answer in known)
        )

    async def uncordon(self, entry: WorkerEntry) -> UncordonAnswer:
        """Undo a person's cordon, in all of its queues."""
        answers = [await self._broker.uncordon(q, entry.incarnation) for q in entry.queues]
        return UncordonAnswer(
            undone=any(answer.undone for answer in answers),
            still=any(answer.still for answer in answers),
        )

    async def stacks(self, entry: WorkerEntry, patience: float, sleep: Sleep) -> StacksAnswer:
        """Ask it what its processes do, and wait for the answer for ``patience`` seconds.

        Raises NoAnswerError, WorkerNotFoundError.
        """
        who, queue = entry.incarnation, entry.queues[0]
        if entry.presence.is_stale:
            raise NoAnswerError(who, f"it was {entry.remark}")
        answers = entry.document.get("answers")
        if not isinstance(answers, list) or "stacks" not in answers:
            version = entry.document.get("version") or "unknown"
            raise NoAnswerError(who, f"its version ({version}) does not know this request")
        number = await self._broker.ask_stacks(queue, who)
        if number is None:
            raise WorkerNotFoundError(who)
        for _ in range(max(1, round(patience / LOOK_EVERY_S))):
            answer = await self._broker.stacks(queue, who)
            if answer is not None and answer.number >= number:
                return answer
            await sleep(LOOK_EVERY_S)
        raise NoAnswerError(who, await self._why_silent(queue, who, patience))

    async def _why_silent(self, queue: QueueName, who: str, patience: float) -> str:
        present = {found.incarnation: found for found in await self._broker.workers(queue)}
        if who not in present:
            return "it has ended meanwhile"
        silent = in_words(present[who].silent_for)
        return (
            f"no answer came within {patience:g} s, and it was last seen {silent} ago; if it "
            "stands still, SIGUSR1 may still make it log its stacks"
        )


def _entry(incarnation: str, found: Sequence[tuple[QueueName, Presence]]) -> WorkerEntry:
    cordon = Cordon.NOBODY
    for _, presence in found:
        cordon |= presence.cordon
    return WorkerEntry(
        incarnation,
        tuple(queue for queue, _ in found),
        min((presence for _, presence in found), key=lambda presence: presence.silent_for),
        cordon,
    )
