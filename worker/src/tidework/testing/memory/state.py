"""One queue of the memory model: its jobs, and the transitions that the scripts make in Redis."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tidework.broker.documents import Beginning
from tidework.model.job import DEFAULT_PRIORITY, FINISHED_STATES, Enqueued, Job, JobState
from tidework.model.lease import (
    ANTI_STARVATION,
    ClaimedJob,
    Settlement,
)
from tidework.model.losses import pause_after
from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.model.unique import OnConflict, UniqueUntil
from tidework.testing.memory.entry import Entry
from tidework.testing.memory.store import QueueStore

CAPPED_RELEASE_DELAY_MS = 5_000
_MS = timedelta(milliseconds=1)
_TALLIED = {JobState.SUCCEEDED: "s", JobState.DEAD: "d", JobState.CANCELLED: "c"}


class QueueState(QueueStore):
    """The transitions of one queue."""

    def insert(self, job: Job, body: bytes, *, cron: str = "", hold: bool = False) -> Enqueued:
        """A new job, unless its id is known or its unique key is held."""
        if self.is_known(job.id):
            self.counters["known"] += 1
            return Enqueued(job.id, False)
        replaces = ""
        if job.unique is not None and not cron:
            holder = self.uniques.holder_of(job.unique.key, self.now)
            if holder and job.unique.on_conflict is not OnConflict.REPLACE:
                self.counters["deduplicated"] += 1
                return Enqueued(holder, False)
            if holder:
                replaces = self._replace(holder)
                hold = hold or bool(replaces)
            self.uniques.hold(job.id, job.unique, self.now)
        available = self._due_ms(job)
        waits = hold or available > self.now
        entry = Entry(
            id=job.id,
            task=job.task,
            body=body,
            priority=job.priority,
            available_ms=available,
            state=JobState.SCHEDULED if waits else JobState.READY,
            cron=cron,
            held=hold,
            unique=None if cron else job.unique,
            replaces=replaces,
            span_ms=self.now if job.delay is not None and available > self.now else 0,
        )
        if waits and not hold:
            self._note_due(available)
        self.entries[job.id] = entry
        self.counters["enqueued"] += 1
        self.tally(job.task, "e")
        return Enqueued(job.id, True)

    def _note_due(self, available_ms: int) -> None:
        """A job comes: workers have not heard of it if it is due before all others."""
        others = (e for e in self.entries.values() if e.state is JobState.SCHEDULED)
        earliest = min((e.available_ms for e in others if not e.held), default=None)
        self._new_earliest |= earliest is None or available_ms < earliest

    def _due_ms(self, job: Job) -> int:
        if job.delay is not None:
            return self.now + round(job.delay * 1000)
        return self.now if job.available_at is None else round(job.available_at * 1000)

    def _replace(self, old: str) -> str:
        """Cancel the holder of a key, or ask it to stop: then its id, for the new job to wait."""
        entry = self.entries.get(old)
        if entry is None or entry.state in FINISHED_STATES:
            return ""
        self.counters["replaced"] += 1
        if entry.state is JobState.RUNNING:
            entry.cancel = True
            return old
        stopping = entry.replaces
        entry.replaces = ""
        self._finish(entry, JobState.CANCELLED, b"")
        return stopping

    def bury_document(
        self, job_id: str, body: bytes, error: JobError, *, of: Job | None = None
    ) -> None:
        """A dead letter of a document that is no job, or one that may not become it."""
        task = "" if of is None else of.task
        entry = Entry(job_id, task, body, DEFAULT_PRIORITY, self.now, JobState.READY)
        entry.raw = of is None
        entry.unique = None if of is None else of.unique
        self.entries[job_id] = entry
        self.counters["rejected"] += 1
        self._finish(entry, JobState.DEAD, error.encode())

    def claim(self, want: int, token: str) -> list[Entry]:
        """Lease up to ``want`` ready jobs."""
        claimed: list[Entry] = []
        while len(claimed) < want:
            ready = self.in_state(JobState.READY)
            if not ready:
                break
            self.counters["claimed"] += 1
            oldest_first = self.counters["claimed"] % ANTI_STARVATION == 0
            entry = (
                min(ready, key=lambda e: (e.available_ms, e.priority, e.id))
                if oldest_first
                else ready[0]
            )
            if entry.unique is not None and entry.unique.until is UniqueUntil.START:
                self.uniques.free(entry.id, entry.unique.key)
            self.points.tally_claim(self.now, entry.task, entry.available_ms)
            entry.state = JobState.RUNNING
            entry.attempt += 1
            entry.deliveries += 1
            entry.token = token
            entry.lease_ms = self.now + self.lease_ms
            entry.started_ms = entry.changed_ms = self.now
            claimed.append(entry)
        return claimed

    def holds(self, claimed: ClaimedJob) -> bool:
        """Whether the lease is still that of the claim."""
        entry = self.entries.get(claimed.id)
        if entry is None or entry.state is not JobState.RUNNING:
            return False
        return entry.token == claimed.token

    def settle(self, found: Settlement) -> bool:
        """End an attempt; False if the lease is not that token's any more."""
        entry = self.entries.get(found.id)
        if entry is None or entry.state is not JobState.RUNNING or entry.token != found.token:
            self.counters["lease_lost"] += 1
            return False
        kind, detail = found.outcome.kind, found.outcome.detail
        delay_ms = found.outcome.delay // _MS
        gives_back = kind in (OutcomeKind.RETRY, OutcomeKind.RELEASE, OutcomeKind.LOSS)
        cancelled = kind is OutcomeKind.CANCELLED or (entry.cancel and gives_back)
        waits_until = self._waits_until(entry, found.outcome)
        is_over = waits_until is not None and waits_until <= self.now
        if kind is not OutcomeKind.COMPLETE:
            letter = OutcomeKind.BURY if is_over else kind
            letter = OutcomeKind.CANCELLED if cancelled else letter
            entry.note_end(letter.value, self.now, found.outcome.cause)
        if cancelled:
            self._finish(entry, JobState.CANCELLED, b"")
        elif kind is OutcomeKind.COMPLETE:
            self._finish(entry, JobState.SUCCEEDED, detail)
            entry.token = found.token
        elif kind is OutcomeKind.BURY:
            self.tally(entry.task, "f")
            self._finish(entry, JobState.DEAD, detail)
        elif kind is OutcomeKind.RETRY:
            self.counters["retried"] += 1
            self.tally(entry.task, "f")
            self.tally(entry.task, "r")
            entry.detail = detail
            self._wait_again(entry, self.now + delay_ms)
        elif is_over:
            self._finish(entry, JobState.DEAD, _unknown_error(found.outcome).encode())
        elif waits_until is not None:
            self._release(entry, min(delay_ms, waits_until - self.now))
            entry.unknown_until_ms = max(entry.available_ms, waits_until)
        elif kind is OutcomeKind.RELEASE:
            self._release(entry, delay_ms)
        else:
            self._lose(entry, detail, waited_ms=0)
        return True

    def _waits_until(self, entry: Entry, outcome: Outcome) -> int | None:
        """Until when a job of an unknown task waits: from its first such release on."""
        if outcome.unknown_for is None:
            return None
        return entry.unknown_until_ms or self.now + outcome.unknown_for // _MS

    def _release(self, entry: Entry, delay_ms: int) -> None:
        self.counters["released"] += 1
        self.tally(entry.task, "g")
        entry.releases += 1
        if entry.releases > self.limits.release_cap:
            self._wait_again(entry, self.now + max(delay_ms, CAPPED_RELEASE_DELAY_MS))
            return
        entry.attempt -= 1
        due = min(entry.available_ms, self.now)
        self._wait_again(entry, self.now + delay_ms if delay_ms else due)

    def _lose(self, entry: Entry, detail: bytes, *, waited_ms: int) -> bool:
        """Count a loss; True if that made the job a dead letter."""
        self.counters["lost"] += 1
        self.tally(entry.task, "l")
        entry.losses += 1
        entry.attempt -= 1
        entry.detail = detail
        if entry.losses >= self.limits.poison_cap:
            self._finish(entry, JobState.DEAD, detail)
            return True
        pause_ms = pause_after(entry.losses, self.lease_ms * _MS, waited_ms * _MS) // _MS
        due = min(entry.available_ms, self.now)
        self._wait_again(entry, self.now + pause_ms if pause_ms else due)
        return False

    def _wait_again(self, entry: Entry, available_ms: int) -> None:
        entry.available_ms = available_ms
        entry.state = JobState.SCHEDULED if available_ms > self.now else JobState.READY
        entry.span_ms = self.now if available_ms > self.now else 0
        entry.changed_ms = self.now
        entry.token = ""
        entry.unknown_until_ms = 0

    def _finish(self, entry: Entry, state: JobState, detail: bytes) -> None:
        was_running = entry.state is JobState.RUNNING
        entry.state = state
        entry.changed_ms = self.now
        entry.token = ""
        entry.span_ms = 0
        entry.held = False
        entry.unknown_until_ms = 0
        entry.detail = detail
        if state is not JobState.DEAD:
            entry.progress = b""
        self.counters[state.value] += 1
        self.tally(entry.task, _TALLIED[state])
        if entry.cron:
            self.fires.note_end(entry, was_running=was_running)
        if entry.cron and not self.active_runs(entry.cron, held=False):
            self._let_go(lambda e: e.cron == entry.cron)
        if entry.unique is not None:
            if entry.unique.until is not UniqueUntil.TTL:
                self.uniques.free(entry.id, entry.unique.key)
            entry.replaces = ""
            self._let_go(lambda e: e.replaces == entry.id)

    def _let_go(self, is_meant: Callable[[Entry], bool]) -> None:
        for entry in self.entries.values():
            if is_meant(entry) and entry.held:
                entry.available_ms = max(self.now, entry.available_ms)
                waits = entry.available_ms > self.now
                if waits:
                    self._note_due(entry.available_ms)
                entry.held = False
                entry.replaces = ""
                entry.state = JobState.SCHEDULED if waits else JobState.READY
                entry.span_ms *= waits
                entry.changed_ms = self.now

    def cancel(self, job_id: str) -> str:
        """Cancel a waiting job; ask for it of a running one."""
        entry = self.entries.get(job_id)
        if entry is None:
            return "unknown"
        if entry.state in FINISHED_STATES:
            return "finished"
        if entry.state is JobState.RUNNING:
            entry.cancel = True
            return "requested"
        self._finish(entry, JobState.CANCELLED, b"")
        return "cancelled"

    def replay(self, job_id: str) -> str:
        """Make a dead letter ready again; one that never validated goes back to the inbox."""
        entry = self.entries.get(job_id)
        if entry is None:
            return "unknown"
        if entry.state is not JobState.DEAD:
            return "not_dead"
        if isinstance(entry.body, Beginning):
            return "cut"
        unique = entry.unique
        if unique is not None and unique.until is not UniqueUntil.TTL:
            if self.uniques.holder_of(unique.key, self.now):
                return "unique"
            self.uniques.hold(job_id, unique, self.now)
        self.counters["replayed"] += 1
        if entry.raw:
            del self.entries[job_id]
            self.inbox.append(entry.body)
            return "replayed"
        entry.attempt = entry.losses = entry.releases = 0
        self.fires.note_replay(entry)
        entry.detail = b""
        entry.cancel = False
        self._wait_again(entry, self.now)
        return "replayed"

    def purge(self, job_id: str) -> str:
        """Delete an ended job; its id stays known for a while."""
        entry = self.entries.get(job_id)
        if entry is None:
            return "unknown"
        if entry.state not in FINISHED_STATES:
            return "unfinished"
        self.counters["purged"] += 1
        self._forget(entry)
        return "purged"

    def promote_by_hand(self, job_id: str) -> str:
        """Make a scheduled job ready before it is due; else why not."""
        entry = self.entries.get(job_id)
        if entry is None:
            return "unknown"
        if entry.state is not JobState.SCHEDULED:
            return "ended" if entry.state in FINISHED_STATES else entry.state.value
        if entry.held:
            return "held"
        entry.state, entry.available_ms, entry.span_ms = JobState.READY, self.now, 0
        self.counters["promoted_by_hand"] += 1
        return "promoted"

    def promote(self, limit: int) -> int:
        """Make due jobs ready."""
        due = [
            e
            for e in self.in_state(JobState.SCHEDULED)
            if e.available_ms <= self.now and not e.held
        ]
        for entry in due[:limit]:
            entry.state = JobState.READY
            entry.span_ms = 0
        return len(due[:limit])

    def reap(self, limit: int) -> tuple[int, int]:
        """Take back jobs whose lease ran out: (given back or cancelled, buried)."""
        expired = [e for e in self.in_state(JobState.RUNNING) if e.lease_ms <= self.now][:limit]
        buried = 0
        for entry in expired:
            self.counters["reaped"] += 1
            entry.note_end("e", self.now, "the lease expired")
            if entry.cancel:
                self._finish(entry, JobState.CANCELLED, b"")
            else:
                error = JobError(
                    "LeaseExpired",
                    f"worker {entry.worker} was lost while it held the job",
                    cause="lost",
                )
                buried += self._lose(entry, error.encode(), waited_ms=self.lease_ms)
        return len(expired) - buried, buried


def _unknown_error(outcome: Outcome) -> JobError:
    waited = 0 if outcome.unknown_for is None else outcome.unknown_for.total_seconds()
    message = f"{outcome.cause}; no worker knew it for {waited:.0f} s"
    return JobError("UnknownTaskError", message, cause="unknown_task")
