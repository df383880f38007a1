"""What the memory model keeps of workers besides their jobs: cordons, and requests for stacks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tidework.broker.cordons import read_score, score_of
from tidework.model.backlog import Cordon, StacksAnswer

KEEP_STACKS_MS = 60_000


class Cordons:
    """Who is kept from claiming. ``scores``: by incarnation, as Redis has them."""

    def __init__(self) -> None:
        self.scores: dict[str, int] = {}

    def by_whom(self, worker: str, now: int) -> Cordon:
        """Who does, now."""
        return read_score(self.scores.get(worker, 0), now)

    def note_person(self, worker: str, now: int, *, cordons: bool) -> None:
        """A person does, or does no more; what the autoscaler said stands."""
        if cordons or Cordon.PERSON in self.by_whom(worker, now):
            self._store(worker, now, by_person=cordons, until_ms=self._until(worker))

    def note_autoscaler(self, workers: Collection[str], until_ms: int, now: int) -> None:
        """It keeps these from claiming and nobody else."""
        for worker in {*self.scores, *workers}:
            by_person = Cordon.PERSON in self.by_whom(worker, now)
            self._store(worker, now, by_person=by_person, until_ms=until_ms * (worker in workers))

    def rank(self, workers: Sequence[str], leases: dict[str, int], now: int) -> list[str]:
        """In the order in which the autoscaler is to cordon them."""

        def order(worker: str) -> tuple[object, ...]:
            by = self.by_whom(worker, now)
            cordoned = Cordon.AUTOSCALER in by
            return Cordon.PERSON not in by, leases.get(worker, 0), not cordoned, worker

        return sorted(workers, key=order)

    def set_back(self, now: int, back: int, *, longest_ms: int) -> None:
        """The clock was, by ``back``: what no right clock has said ends as much earlier."""
        for worker in list(self.scores):
            until = self._until(worker)
            if until - now > longest_ms:
                by_person = Cordon.PERSON in self.by_whom(worker, now)
                self._store(worker, now, by_person=by_person, until_ms=until - back)

    def _until(self, worker: str) -> int:
        return self.scores.get(worker, 0) % score_of(by_person=True, until_ms=0)

    def _store(self, worker: str, now: int, *, by_person: bool, until_ms: int) -> None:
        score = score_of(by_person=by_person, until_ms=until_ms if until_ms > now else 0)
        self.scores.pop(worker, None)
        if score:
            self.scores[worker] = score


@dataclass(slots=True)
class _Numbers:
    """Sequence of the last request, of the last one answered, and when that was (ms)."""

    asked: int = 0
    answered: int = 0
    at: int = 0


@dataclass(slots=True)
class StackRequests:
    """By incarnation. ``answers``: the last one of each, for a minute."""

    numbers: dict[str, _Numbers] = field(default_factory=dict)
    answers: dict[str, StacksAnswer] = field(default_factory=dict)

    def ask(self, worker: str) -> int:
        """The number of the request that waits from now on."""
        found = self.numbers.setdefault(worker, _Numbers())
        found.asked = max(found.asked, found.answered + 1)
        return found.asked

    def is_waiting(self, worker: str) -> bool:
        """Does somebody wait for an answer?"""
        found = self.numbers.get(worker)
        return found is not None and found.asked > found.answered

    def note_beat(self, worker: str, answer: StacksAnswer | None, now: int) -> int:
        """Store an answer, or forget one that is old; the number that waits, 0 if none does."""
        found = self.numbers.get(worker)
        if found is None:
            return 0
        if answer is not None and found.answered < answer.number <= found.asked:
            found.answered, found.at = answer.number, now
            self.answers[worker] = answer
        elif found.asked == found.answered and abs(now - found.at) >= KEEP_STACKS_MS:
            self.forget(worker)
        return found.asked if found.asked > found.answered else 0

    def forget(self, worker: str) -> None:
        """Nothing of it stays."""
        self.numbers.pop(worker, None)
        self.answers.pop(worker, None)
