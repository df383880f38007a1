"""The last fires and runs of a CronTask, as fragments/fires.lua writes them.

Their number, then a line each, the oldest first, its fields divided by TABs: name, kind, verdict,
due ms, decided ms, how many fires it stands for, due ms of the first of them; then, once the run
has ended, claimed ms, started ms, ended ms, state, attempt (else 0, 0, 0, '', 0); then a note. The
name of a run is its job's id without the uid, '/' and the whole id where that does not begin so; of
what came to no job it is '*' and the fire time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from tidework.clock import from_ms, to_ms
from tidework.model.fire import Fire, FireKind, Verdict
from tidework.model.job import JobState

MOST_FIRES = 100
"""The newest that are kept of each CronTask."""

_LETTERS = {FireKind.SCHEDULE: "s", FireKind.BY_HAND: "h", FireKind.BACKFILL: "b"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}


def read_fires(uid: str, text: str) -> tuple[Fire, ...]:
    """The fires of a text, the newest first. Raises ValueError or KeyError for foreign bytes."""
    found = [_read_line(uid, line) for line in text.split("\n")[1:]]
    return newest_first(found)


def newest_first(fires: Iterable[Fire]) -> tuple[Fire, ...]:
    """Fires that came in this order, the one that was decided last in front."""
    return tuple(sorted(fires, key=lambda fire: fire.decided_at)[::-1])


def write_fires(uid: str, fires: list[Fire]) -> str:
    """The text of fires that came in this order."""
    return "\n".join([str(len(fires)), *(_write_line(uid, fire) for fire in fires)])


def _read_line(uid: str, line: str) -> Fire:
    name, kind, verdict, due, decided, count, since, *rest = line.split("\t")
    claimed, started, ended, state, attempt, note = rest
    return Fire(
        kind=_KINDS[kind],
        verdict=Verdict(verdict),
        due=from_ms(int(due)),
        decided_at=from_ms(int(decided)),
        job_id=_job_id(uid, name),
        count=int(count),
        first_due=from_ms(int(since)),
        claimed_at=_moment(claimed),
        started_at=_moment(started),
        ended_at=_moment(ended),
        outcome=JobState(state) if state else None,
        attempts=int(attempt),
        note=note,
    )


def _write_line(uid: str, fire: Fire) -> str:
    fields = (
        _name(uid, fire),
        _LETTERS[fire.kind],
        fire.verdict.value,
        to_ms(fire.due),
        to_ms(fire.decided_at),
        fire.count,
        to_ms(fire.first_due),
        *(0 if at is None else to_ms(at) for at in (fire.claimed_at, fire.started_at)),
        0 if fire.ended_at is None else to_ms(fire.ended_at),
        "" if fire.outcome is None else fire.outcome.value,
        fire.attempts,
        fire.note,
    )
    return "\t".join(map(str, fields))


def _name(uid: str, fire: Fire) -> str:
    if not fire.job_id:
        return f"*{to_ms(fire.due) // 1000}"
    own = fire.job_id.removeprefix(f"{uid}-")
    return f"/{fire.job_id}" if own == fire.job_id else own


def _job_id(uid: str, name: str) -> str:
    if name.startswith("*"):
        return ""
    return name[1:] if name.startswith("/") else f"{uid}-{name}"


def _moment(ms: str) -> datetime | None:
    return from_ms(int(ms)) if ms != "0" else None
