"""Acts: what can be done to a queue, with how often it is chosen and what it is given.

Hypothesis' own rules are not used for them: swarm testing leaves half of the rules out of an
example, and an example in which nobody enqueues, or nobody works, shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.property.broker_machine_draws import JobPlan
from tests.property.broker_machine_stage import Stage
from tests.property.broker_machine_telling import tell
from tests.property.broker_machine_twins import Twins
from tidework.model.job import Job

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., None])
EMPHASIS = 4
"""How much more often the acts of an example's theme are chosen."""


@dataclass(frozen=True, slots=True)
class Act:
    """One of a Player's methods and what it is given."""

    name: str
    given: dict[str, Any]

    def __repr__(self) -> str:
        words = (f"{name}={tell(value)}" for name, value in self.given.items())
        return f"{self.name}({', '.join(words)})"


def act(weight: int, **given: st.SearchStrategy[Any]) -> Callable[[Method], Method]:
    """Makes a method one that is chosen ``weight`` times as often as one of weight 1."""

    def mark(method: Method) -> Method:
        vars(method)["act"] = weight, st.fixed_dictionaries(given)
        return method

    return mark


@cache
def acts_of(player: type[Player], theme: str) -> st.SearchStrategy[Act]:
    """Acts of a player, those of a theme (a class) more often than others."""
    names: list[str] = []
    acts: dict[str, st.SearchStrategy[Act]] = {}
    for owner in player.__mro__:
        for name, method in vars(owner).items():
            weight, given = getattr(method, "act", (0, st.nothing()))
            acts[name] = given.map(partial(Act, name))
            names += [name] * weight * (EMPHASIS if owner.__name__ == theme else 1)
    return st.sampled_from(names).flatmap(acts.__getitem__)


class Player:
    """Whoever acts: what has been used so far, and how acts pick from it.

    A pick counts from the newest, or from the most fitting.
    """

    def __init__(self, stage: Stage) -> None:
        self.twins = Twins(stage)
        self.ids: list[str] = []
        self.claims: list[tuple[str, str]] = []
        self.incarnations = ["w0", "w1", "w2"]
        self.sequences: dict[str, int] = {}
        self._numbers = 0

    def perform(self, act: Act) -> None:
        """Do it, as far as it applies."""
        getattr(self, act.name)(**act.given)

    def new_id(self, letter: str) -> str:
        """In order of their making they sort as text does."""
        self._numbers += 1
        return f"{letter}{self._numbers:03}"

    def pick_id(self, which: int) -> str:
        """The newest is 0."""
        return pick(self.ids[::-1], which) if self.ids else "nobody"

    def leases(self) -> list[tuple[str, str]]:
        """(job, token): those that hold, then the latest that do not."""
        records = self.twins.stored.records
        holds = [c for c in self.claims if c[0] in records and records[c[0]].token == c[1]]
        return holds + [c for c in self.claims[-3:] if c not in holds]

    def job(self, plan: JobPlan) -> Job:
        """As planned, now."""
        now = self.twins.now
        name = self.new_id("j") if plan.known is None else self.pick_id(plan.known)
        delay = None if plan.due is None or not plan.is_span else plan.due / 1000
        due = None if plan.due is None or plan.is_span else (now + plan.due) / 1000
        self.ids.append(name)
        made = Job(name, plan.task, {}, plan.priority, now / 1000, due, unique=plan.unique)
        return made._replace(delay=delay)


def pick(items: Sequence[T], which: int) -> T:
    """Round and round."""
    return items[which % len(items)]
