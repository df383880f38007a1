"""The history of CronTasks in the memory model: what fragments/fires.lua does in Redis."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tidework.broker.fires import MOST_FIRES
from tidework.clock import from_ms, to_ms
from tidework.model.fire import Fire, FireKind, Verdict
from tidework.model.job import JobState
from tidework.testing.memory.entry import Entry


class Fires:
    """By uid, in the order in which they came."""

    def __init__(self) -> None:
        self.of: dict[str, list[Fire]] = {}

    def note_run(
        self, uid: str, job_id: str, kind: FireKind, due_ms: int, now: int, note: str = ""
    ) -> None:
        """A run was enqueued, or was known already."""
        if self._run(uid, job_id) is None:
            due = from_ms(due_ms)
            self._add(
                uid, Fire(kind, Verdict.ENQUEUED, due, from_ms(now), job_id, 1, due, note=note)
            )

    def note_no_run(
        self, uid: str, verdict: Verdict, fire: int, before: int | None, now: int
    ) -> None:
        """A fire came to no job. before: the last one, if it had the same verdict."""
        due = from_ms(fire * 1000)
        found = self.of.get(uid, [])
        for i, old in enumerate(found):
            if before is not None and not old.job_id and to_ms(old.due) == before * 1000:
                found[i] = replace(old, due=due, decided_at=from_ms(now), count=old.count + 1)
                return
        self._add(uid, Fire(FireKind.SCHEDULE, verdict, due, from_ms(now), "", 1, due))

    def note_end(self, entry: Entry, *, was_running: bool) -> None:
        """A run ended."""
        claimed = int(entry.history[0].split("\t")[2]) if entry.history else entry.started_ms
        self._complete(
            entry,
            claimed_at=_moment(claimed),
            started_at=_moment(entry.started_ms if was_running else 0),
            ended_at=from_ms(entry.changed_ms),
            outcome=entry.state,
            attempts=entry.attempt,
        )

    def note_replay(self, entry: Entry) -> None:
        """A run that was a dead letter is under way again."""
        self._complete(entry)

    def has_run(self, uid: str, job_id: str) -> bool:
        """Is that run in the history?"""
        return self._run(uid, job_id) is not None

    def forget(self, uid: str) -> None:
        """Its CronTask is gone."""
        self.of.pop(uid, None)

    def _complete(
        self,
        entry: Entry,
        *,
        claimed_at: datetime | None = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
        outcome: JobState | None = None,
        attempts: int = 0,
    ) -> None:
        at = self._run(entry.cron, entry.id)
        if at is not None:
            found = self.of[entry.cron]
            found[at] = replace(
                found[at],
                claimed_at=claimed_at,
                started_at=started_at,
                ended_at=ended_at,
                outcome=outcome,
                attempts=attempts,
            )

    def _run(self, uid: str, job_id: str) -> int | None:
        runs = enumerate(self.of.get(uid, []))
        return next((i for i, fire in runs if fire.job_id == job_id), None)

    def _add(self, uid: str, fire: Fire) -> None:
        self.of[uid] = [*self.of.get(uid, []), fire][-MOST_FIRES:]


def _moment(ms: int) -> datetime | None:
    return from_ms(ms) if ms else None
