"""Jobs of any states that fit a search: by index where there is one, else by looking at them.

What is looked at in one call is bounded, so that a rare text costs further calls and not a long
one: a call may find less than it was to, and still name where the next one goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tidework.broker.broker import Producer
from tidework.errors import ConfigurationError
from tidework.meant import listed
from tidework.model.backlog import FoundJob, JobFilter, JobRecord
from tidework.model.identity import QueueName
from tidework.model.job import FINISHED_STATES, JobState

MOST_LOOKED_AT = 1000
BLOCK = 200
"""So many jobs are read at once where most may not fit."""
STATES = (
    JobState.RUNNING,
    JobState.READY,
    JobState.SCHEDULED,
    JobState.DEAD,
    JobState.SUCCEEDED,
    JobState.CANCELLED,
)
"""In this order they are listed."""
_INDEXED = frozenset({JobState.DEAD, JobState.CANCELLED})


@dataclass(frozen=True, slots=True)
class JobSearch:
    """Which jobs are meant; nothing given = every job of the queue.

    error:        fingerprint of the error of a dead letter
    text:         in the id, task, params or error, as it is written there
    since, until: both included: of the end of ended jobs, the due time of waiting ones, the start
                  of running ones
    """

    states: Sequence[JobState] = ()
    task: str = ""
    error: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def sources(self) -> tuple[JobState, ...]:
        """The states to look through. Raises ConfigurationError if there are none."""
        wanted = set(self.states) or set(STATES)
        if self.error:
            wanted &= {JobState.DEAD}
        if not wanted:
            raise ConfigurationError("only dead letters are listed by error; ask for state dead")
        return tuple(state for state in STATES if state in wanted)

    def index(self, state: JobState) -> JobFilter:
        """What the queue itself can leave out."""
        is_timed = state in FINISHED_STATES or state is JobState.SCHEDULED
        return JobFilter(
            task=self.task if state in _INDEXED and not self.error else "",
            error=self.error,
            since=self.since if is_timed else None,
            until=self.until if is_timed else None,
        )

    def block(self, state: JobState, room: int) -> int:
        """How many jobs to read for ``room`` of them: if the queue leaves nothing to look for."""
        index = self.index(state)
        by_looking = (
            self.text
            or (self.task and not index.task)
            or ((self.since or self.until) and not (index.since or index.until))
        )
        return BLOCK if by_looking else room

    def fits(self, record: JobRecord) -> bool:
        """Is it meant? The text was looked for already."""
        at = _moment_of(record)
        return (
            record.state in self.sources
            and (not self.task or record.task == self.task)
            and (self.since is None or (at is not None and at >= self.since))
            and (self.until is None or (at is not None and at <= self.until))
        )


@dataclass(frozen=True, slots=True)
class JobsFound:
    """``cursor`` continues the search, None at its end; looked_at: jobs that this call read."""

    jobs: tuple[FoundJob, ...]
    cursor: str | None
    looked_at: int


async def find_jobs(
    broker: Producer, queue: QueueName, search: JobSearch, *, cursor: str | None, limit: int
) -> JobsFound:
    """At most ``limit`` jobs, state by state. Raises ConfigurationError for a bad cursor."""
    sources = search.sources
    place = _place(cursor, sources)
    found: list[FoundJob] = []
    looked_at = 0
    while len(found) < limit and looked_at < MOST_LOOKED_AT:
        room = limit - len(found)
        block = search.block(place.state, room)
        page = await broker.list_jobs(
            queue, place.state, search.index(place.state), cursor=place.block, limit=block
        )
        ids = _behind(page.ids, place.last)
        looked_at += len(ids)
        jobs = await broker.get_jobs(queue, ids, text=search.text)
        fitting = [job for job in jobs if search.fits(job.record)]
        found += fitting[:room]
        if len(fitting) > room:
            last = fitting[room - 1].record.id
            return JobsFound(tuple(found), str(place._replace(last=last)), looked_at)
        following = sources.index(place.state) + 1
        if page.cursor is not None:
            place = _Place(place.state, page.cursor)
        elif following < len(sources):
            place = _Place(sources[following])
        else:
            return JobsFound(tuple(found), None, looked_at)
    return JobsFound(tuple(found), str(place), looked_at)


class _Place(NamedTuple):
    """Where a search goes on. block: cursor of the block; last: the job of it that was last told"""

    state: JobState
    block: str | None = None
    last: str = ""

    def __str__(self) -> str:
        return f"{self.state.value}~{self.block or ''}~{self.last}"


def _behind(ids: Sequence[str], last: str) -> Sequence[str]:
    """Those of a block that were not told yet; all of them if that one has moved meanwhile."""
    return ids[ids.index(last) + 1 :] if last in ids else ids


def _place(cursor: str | None, sources: Sequence[JobState]) -> _Place:
    if cursor is None:
        return _Place(sources[0])
    name, _, rest = cursor.partition("~")
    block, _, last = rest.partition("~")
    state = next((each for each in sources if each.value == name), None)
    if state is None:
        raise ConfigurationError(
            f"cursor {cursor!r} is not one of this list, which has the states "
            f"{listed([each.value for each in sources])}; take it from the page before"
        )
    return _Place(state, block or None, last)


def _moment_of(record: JobRecord) -> datetime | None:
    if record.state in FINISHED_STATES:
        return record.changed_at
    return record.started_at if record.state is JobState.RUNNING else record.available_at
