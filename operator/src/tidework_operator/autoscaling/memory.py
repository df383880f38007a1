"""What a leader remembers of a queue between two rounds. Losing it costs time, never a job."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from tidework.model.durability import Durability
from tidework.scaling import History
from tidework.scaling.noting import Noting
from tidework_operator.autoscaling.fleet import Fleet
from tidework_operator.autoscaling.plan import SILENT_S, Action, Scale, Seen, Unmark

WATCH_VICTIMS_S = 60.0
"""Victims that are still there after so long are looked at no more: something else is wrong."""


@dataclass(frozen=True, slots=True)
class Step:
    """A smaller count that was asked for at ``at`` (monotonic), and the pods that should go."""

    replicas: int
    victims: frozenset[str]
    at: float


@dataclass(slots=True)
class Memory:
    """Of one queue.

    term:            under which the rest was learnt
    may_be_cordoned: some worker may be kept from claiming, by us or by the leader before us
    step:            the last smaller count whose result is not known yet
    last_scale:      when we changed the replicas (wall time)
    configured:      what the queue's clients were told of its durability
    """

    term: int
    history: History = field(default_factory=History)
    seen: Seen = field(default_factory=Seen)
    may_be_cordoned: bool = True
    step: Step | None = None
    last_scale: datetime | None = None
    configured: Durability | None = None
    noting: Noting = field(default_factory=Noting)

    def look(self, fleet: Fleet, now: float, *, knows_workers: bool) -> None:
        """Note since when pods are marked or silent; nobody is silent while Redis is."""
        marked = [pod.name for pod in fleet.active if pod.marked]
        silent = [pod.name for pod in fleet.active if pod.is_ready and not pod.incarnation]
        self.seen = replace(
            self.seen,
            marked=_since(self.seen.marked, marked, now),
            silent=_since(self.seen.silent, silent, now) if knows_workers else {},
        )

    def note_cordoned(self, incarnations: Collection[str]) -> None:
        """They are kept from claiming, and nobody else is."""
        self.may_be_cordoned = bool(incarnations)
        self.seen = replace(self.seen, cordoned=frozenset(incarnations))

    def note_applied(self, action: Action, fleet: Fleet, now: float, wall: datetime) -> None:
        """An action was carried out."""
        if isinstance(action, Unmark):
            self.seen = replace(self.seen, unmarked=now)
        if isinstance(action, Scale):
            self.last_scale = wall
            shrinks = action.replicas < fleet.replicas and bool(action.victims)
            self.step = Step(action.replicas, action.victims, now) if shrinks else None

    def wrong_victims(self, fleet: Fleet, now: float) -> frozenset[str]:
        """Pods that stayed although they should have gone: others went instead of them.

        Empty until the last step shows its result, and after it has been told.
        """
        step = self.step
        if step is None:
            return frozenset()
        if fleet.replicas != step.replicas or now - step.at > WATCH_VICTIMS_S:
            self.step = None
            return frozenset()
        if fleet.rolling or len(fleet.active) > step.replicas:
            return frozenset()
        self.step = None
        return step.victims & {pod.name for pod in fleet.active}

    def silent(self, now: float) -> tuple[str, ...]:
        """Names of ready pods without presence for too long, sorted."""
        return tuple(
            sorted(pod for pod, since in self.seen.silent.items() if now - since >= SILENT_S)
        )


def _since(before: Mapping[str, float], pods: Collection[str], now: float) -> dict[str, float]:
    return {pod: before.get(pod, now) for pod in pods}
