"""One queue of the memory model: its jobs, and the transitions that the scripts make in Redis."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from datetime import timedelta

from tidework.broker.broker import MARKER
from tidework.broker.memory_entry import Cron, Entry
from tidework.clock import from_ms
from tidework.model.backlog import Presence
from tidework.model.fire import CronRecord, Verdict
from tidework.model.job import DEFAULT_PRIORITY, FINISHED_STATES, Job, JobState
from tidework.model.lease import (
    ANTI_STARVATION,
    ClaimedJob,
    ExchangeReply,
    QueueLimits,
    Settlement,
)
from tidework.model.outcome import JobError, OutcomeKind

TOMBSTONE_MS = 600_000
CAPPED_RELEASE_DELAY_MS = 5_000
SERVICE_WEIGHT = 0.05
SHORTEST_GAP_MS = 3_000
_MS = timedelta(milliseconds=1)


class QueueState:
    """Everything of one queue. ``now`` (Unix ms) is set before each step."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self.lease_ms = limits.lease // _MS
        self.now = 0
        self.entries: dict[str, Entry] = {}
        self.inbox: deque[bytes] = deque()
        self.intake: list[bytes] = []
        self.counters: Counter[str] = Counter()
        self.replies: dict[str, tuple[int, ExchangeReply]] = {}
        self.presence: dict[str, Presence] = {}
        self.service_time: dict[str, float] = {}
        self.tombstones: dict[str, int] = {}
        self.draining: dict[str, int] = {}
        self.term = 0
        self.leader = ("", 0, 0)
        self.crons: dict[str, Cron] = {}
        self.crontasks: dict[str, bytes] = {}
        self._seen_ms = 0
        self._hold_until = 0
        self._new_earliest = False

    def in_state(self, state: JobState) -> list[Entry]:
        """Waiting jobs by urgency or due time, running by lease, ended newest first."""
        found = [e for e in self.entries.values() if e.state is state]
        if state is JobState.READY:
            return sorted(found, key=lambda e: (e.priority, e.available_ms, e.id))
        if state is JobState.SCHEDULED:
            return sorted(found, key=lambda e: (e.held, e.available_ms, e.priority, e.id))
        if state is JobState.RUNNING:
            return sorted(found, key=lambda e: (e.lease_ms, e.id))
        return sorted(found, key=lambda e: (e.changed_ms, e.id), reverse=True)

    def documents(self) -> int:
        """Unvalidated documents, wake-up markers not counted."""
        return sum(raw != MARKER for raw in [*self.inbox, *self.intake])

    def oldest_age(self) -> float:
        """Seconds that the oldest ready or due job has waited."""
        due = [
            e.available_ms
            for e in self.entries.values()
            if e.state is JobState.READY
            or (e.state is JobState.SCHEDULED and e.available_ms <= self.now and not e.held)
        ]
        return max(0, self.now - min(due)) / 1000 if due else 0.0

    def next_due(self) -> timedelta | None:
        """Until the next scheduled job is due or a lease runs out."""
        times = [e.available_ms for e in self.in_state(JobState.SCHEDULED) if not e.held]
        leases = [e.lease_ms for e in self.in_state(JobState.RUNNING)]
        if leases:
            times.append(max(min(leases), self._hold_until))
        return max(0, min(times) - self.now) * _MS if times else None

    def insert(self, job: Job, body: bytes, *, cron: str = "", hold: bool = False) -> Entry | None:
        """A new job; None if its id is known or was until a short while ago."""
        if job.id in self.entries or self.tombstones.get(job.id, 0) > self.now:
            return None
        available = self.now if job.available_at is None else round(job.available_at * 1000)
        waits = hold or available > self.now
        entry = Entry(
            id=job.id,
            body=body,
            priority=job.priority,
            available_ms=available,
            state=JobState.SCHEDULED if waits else JobState.READY,
            changed_ms=self.now,
            cron=cron,
            held=hold,
        )
        if waits and not hold:
            others = (e for e in self.entries.values() if e.state is JobState.SCHEDULED)
            earliest = min((e.available_ms for e in others if not e.held), default=None)
            self._new_earliest |= earliest is None or available < earliest
        self.entries[job.id] = entry
        self.counters["enqueued"] += 1
        return entry

    def wake(self) -> None:
        """Have one blocked worker look, if there is work or a new earliest due time."""
        ready = any(entry.state is JobState.READY for entry in self.entries.values())
        if not self.inbox and (self._new_earliest or ready):
            self.inbox.append(MARKER)
        self._new_earliest = False

    def take_document(self, raw: bytes) -> bool:
        """Remove one such document from intake; False if somebody else did."""
        if raw in self.intake:
            self.intake.remove(raw)
            return True
        return False

    def bury_document(self, job_id: str, raw: bytes, error: bytes) -> None:
        """A dead letter of a document that is no job."""
        entry = Entry(job_id, raw, DEFAULT_PRIORITY, self.now, JobState.READY, self.now)
        self.entries[job_id] = entry
        self.counters["rejected"] += 1
        self._finish(entry, JobState.DEAD, error)

    def stamp(self) -> bool:
        """Note that the store lives; False while reaping has to stand still after a pause."""
        if self.now < self._seen_ms:  # the clock was set back: leases keep what they had left
            back = self._seen_ms - self.now
            self._hold_until -= back
            for entry in self.in_state(JobState.RUNNING):
                entry.lease_ms -= back
        if self._seen_ms and self.now - self._seen_ms > max(self.lease_ms // 2, SHORTEST_GAP_MS):
            self._hold_until = self.now + self.lease_ms
        self._seen_ms = self.now
        return self.now >= self._hold_until

    def is_cordoned(self, incarnation: str) -> bool:
        """Whether the worker gets no jobs for now."""
        return self.draining.get(incarnation, 0) > self.now

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
        return entry is not None and entry.token == claimed.token

    def settle(self, found: Settlement) -> bool:
        """End an attempt; False if the lease is not that token's any more."""
        entry = self.entries.get(found.id)
        if entry is None or entry.state is not JobState.RUNNING or entry.token != found.token:
            self.counters["lease_lost"] += 1
            return False
        kind, detail = found.outcome.kind, found.outcome.detail
        delay_ms = found.outcome.delay // _MS
        gives_back = kind in (OutcomeKind.RETRY, OutcomeKind.RELEASE, OutcomeKind.LOSS)
        if kind is OutcomeKind.CANCELLED or (entry.cancel and gives_back):
            self._finish(entry, JobState.CANCELLED, b"")
        elif kind is OutcomeKind.COMPLETE:
            self._finish(entry, JobState.SUCCEEDED, detail)
        elif kind is OutcomeKind.BURY:
            self._finish(entry, JobState.DEAD, detail)
        elif kind is OutcomeKind.RETRY:
            self.counters["retried"] += 1
            entry.detail = detail
            self._wait_again(entry, self.now + delay_ms)
        elif kind is OutcomeKind.RELEASE:
            self._release(entry, delay_ms)
        else:
            self._lose(entry, detail)
        return True

    def _release(self, entry: Entry, delay_ms: int) -> None:
        self.counters["released"] += 1
        entry.releases += 1
        if entry.releases > self.limits.release_cap:
            self._wait_again(entry, self.now + max(delay_ms, CAPPED_RELEASE_DELAY_MS))
            return
        entry.attempt -= 1
        self._wait_again(entry, self.now + delay_ms if delay_ms else entry.available_ms)

    def _lose(self, entry: Entry, detail: bytes) -> bool:
        """Count a loss; True if that made the job a dead letter."""
        self.counters["lost"] += 1
        entry.losses += 1
        entry.attempt -= 1
        entry.detail = detail
        if entry.losses >= self.limits.poison_cap:
            self._finish(entry, JobState.DEAD, detail)
            return True
        self._wait_again(entry, entry.available_ms)
        return False

    def _wait_again(self, entry: Entry, available_ms: int) -> None:
        entry.available_ms = available_ms
        entry.state = JobState.SCHEDULED if available_ms > self.now else JobState.READY
        entry.changed_ms = self.now
        entry.token = ""

    def _finish(self, entry: Entry, state: JobState, detail: bytes) -> None:
        entry.state = state
        entry.changed_ms = self.now
        entry.token = ""
        entry.held = False
        entry.detail = detail
        self.counters[state.value] += 1
        if entry.cron and not self.active_runs(entry.cron, held=False):
            self._let_go(entry.cron)

    def _let_go(self, cron: str) -> None:
        for entry in self.entries.values():
            if entry.cron == cron and entry.held:
                entry.held = False
                entry.state = JobState.READY
                entry.available_ms = self.now

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

    def promote(self, limit: int) -> int:
        """Make due jobs ready."""
        due = [
            e
            for e in self.in_state(JobState.SCHEDULED)
            if e.available_ms <= self.now and not e.held
        ]
        for entry in due[:limit]:
            entry.state = JobState.READY
        return len(due[:limit])

    def reap(self, limit: int) -> tuple[int, int]:
        """Take back jobs whose lease ran out: (given back or cancelled, buried)."""
        expired = [e for e in self.in_state(JobState.RUNNING) if e.lease_ms <= self.now][:limit]
        buried = 0
        for entry in expired:
            self.counters["reaped"] += 1
            if entry.cancel:
                self._finish(entry, JobState.CANCELLED, b"")
            else:
                error = JobError(
                    "LeaseExpired",
                    f"worker {entry.worker} was lost while it held the job",
                    cause="lost",
                )
                buried += self._lose(entry, error.encode())
        return len(expired) - buried, buried

    def forget_absent(self, ttl: timedelta) -> None:
        """Forget workers that were not seen for ``ttl``."""
        oldest = from_ms(self.now) - ttl
        for name, found in list(self.presence.items()):
            if found.seen_at <= oldest:
                del self.presence[name]

    def prune(self, limit: int) -> int:
        """Delete what is past retention."""
        for job_id, until in list(self.tombstones.items()):
            if until <= self.now:
                del self.tombstones[job_id]
        pruned = 0
        for state in FINISHED_STATES:
            keep = self.limits.keep_dead if state is JobState.DEAD else self.limits.keep_succeeded
            found = self.in_state(state)
            surplus = max(0, len(found) - self.limits.keep_count)
            for rank, entry in enumerate(reversed(found)):
                expired = entry.changed_ms + keep // _MS <= self.now
                if pruned >= limit or not (expired or rank < surplus):
                    break
                del self.entries[entry.id]
                pruned += 1
                until = entry.changed_ms + TOMBSTONE_MS
                if until > self.now:
                    self.tombstones[entry.id] = until
        self.counters["pruned"] += pruned
        return pruned

    def note_served(self, served: Mapping[str, tuple[int, float]]) -> None:
        """Move each task's average service time towards what was just measured."""
        for task, (count, seconds) in served.items():
            mean = seconds / count
            known = self.service_time.get(task)
            weight = 1 - (1 - SERVICE_WEIGHT) ** count
            self.service_time[task] = mean if known is None else known + weight * (mean - known)

    def new_cron(self, uid: str, fingerprint: str, start: int) -> Cron:
        """A record that has decided nothing yet."""
        return Cron(uid, fingerprint, start)

    def active_runs(self, uid: str, *, held: bool = True) -> list[str]:
        """Ids of unfinished runs, sorted; with or without those that Replace holds."""
        return sorted(
            e.id
            for e in self.entries.values()
            if e.cron == uid and e.state not in FINISHED_STATES and (held or not e.held)
        )

    def cron_record(self, cron: Cron) -> CronRecord:
        """The read-out of a record."""
        held = [e.id for e in self.entries.values() if e.cron == cron.uid and e.held]
        return CronRecord(
            uid=cron.uid,
            fingerprint=cron.fingerprint,
            watermark=cron.watermark,
            verdicts={v: cron.verdicts[v] for v in Verdict},
            active=tuple(self.active_runs(cron.uid)),
            held=held[0] if held else "",
            last_fire=cron.last_fire,
            last_job=cron.last_job,
            last_run_now=cron.last_run_now,
        )
