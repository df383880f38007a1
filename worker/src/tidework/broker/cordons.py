"""Cordons as Redis keeps them: who keeps a worker from claiming, in one score."""

from __future__ import annotations

from tidework.model.backlog import Cordon

BY_PERSON = 10**15
"""On top of the score: a person did so, see scripts/fragments/cordon.lua."""


def score_of(*, by_person: bool, until_ms: int) -> int:
    """until_ms: when the autoscaler's cordon ends, 0 without one."""
    return until_ms + BY_PERSON * by_person


def read_score(score: int, now_ms: int) -> Cordon:
    """Who does, at ``now_ms``. A score of 0: nobody."""
    by_person, until_ms = divmod(score, BY_PERSON)
    by = Cordon.PERSON if by_person else Cordon.NOBODY
    return by | Cordon.AUTOSCALER if until_ms > now_ms else by
