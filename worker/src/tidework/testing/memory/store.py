"""What one queue of the memory model holds, and what is read from it or forgotten."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from datetime import timedelta

from tidework.broker.documents import MARKER, hand_out, length_of
from tidework.model.backlog import STALE_AFTER, Cordon, Pause, Presence
from tidework.model.durability import Durability
from tidework.model.fire import CronRecord, Suspension, Verdict
from tidework.model.job import FINISHED_STATES, JobState
from tidework.model.lease import (
    TOMBSTONE_MS,
    ExchangeReply,
    Lease,
    QueueLimits,
    RunTimes,
)
from tidework.model.scaled import ScalingRecord
from tidework.model.statistics import NO_TASK
from tidework.testing.memory.clock import latest_span, set_back
from tidework.testing.memory.entry import Cron, Entry
from tidework.testing.memory.fires import Fires
from tidework.testing.memory.points import Points
from tidework.testing.memory.unique import Uniques
from tidework.testing.memory.workers import Cordons, StackRequests

TOMBSTONES_PER_JOB = 10
SERVICE_WEIGHT = 0.05
SHORTEST_GAP_MS = 3_000
MOST_WOKEN = 10
STAMPED_EVERY_MS = 1_000
_MS = timedelta(milliseconds=1)


class QueueStore:
    """Everything of one queue. ``now`` (Unix ms) is set before each step."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self.lease_ms = limits.lease // _MS
        self.now = 0
        self.entries: dict[str, Entry] = {}
        self.inbox: deque[bytes] = deque()
        self.intake: list[bytes] = []
        self.counters: Counter[str] = Counter()
        self.replies: dict[tuple[str, bool], tuple[int, ExchangeReply]] = {}
        self.presence: dict[str, Presence | None] = {}  # None: it has left
        self.seen: dict[str, int] = {}
        self.service_time: dict[str, float] = {}
        self.points = Points()
        self.tasks: dict[str, int] = {}  # announced, by when (ms)
        self.announced = ""
        self.tombstones: dict[str, int] = {}
        self.cordons = Cordons()
        self.stack_requests = StackRequests()
        self.term = 0
        self.leader = ("", 0, 0)
        self.crons: dict[str, Cron] = {}
        self.run_now_nonces: dict[str, str] = {}
        self.runs_by_hand: Counter[str] = Counter()
        self.crontasks: dict[str, bytes] = {}
        self.fires = Fires()
        self.suspensions: dict[str, Suspension] = {}
        self.backfilled: dict[str, list[int]] = {}
        self.uniques = Uniques()
        self.onces: dict[str, tuple[Lease | None, int, int]] = {}
        self.pause: Pause | None = None
        self.durability = Durability.ASYNC
        self.scaling = ScalingRecord()
        self._seen_ms = 0
        self._hold_until = 0
        self._new_earliest = False

    def in_state(self, state: JobState) -> list[Entry]:
        """Waiting jobs by urgency or due time, running by lease, ended newest first."""
        found = [e for e in self.entries.values() if e.state is state]
        return sorted(found, key=lambda e: e.place, reverse=state in FINISHED_STATES)

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

    def is_known(self, job_id: str) -> bool:
        """From the enqueue until ten minutes after the end at least."""
        return job_id in self.entries or self.tombstones.get(job_id, 0) > self.now

    def wake(self) -> None:
        """Have one blocked worker look, if there is work or a new earliest due time."""
        ready = any(entry.state is JobState.READY for entry in self.entries.values())
        if not self.inbox and (self._new_earliest or ready) and self.pause is None:
            self.inbox.append(MARKER)
        self._new_earliest = False

    def woken(self) -> None:
        """Nobody else need be: who asks is told when the next job is due."""
        self._new_earliest = False

    def wake_idle(self) -> None:
        """Have blocked workers look, ten at most: there is something that one of them is asked."""
        if not self.inbox:
            living = sum(at > self.now - STALE_AFTER // _MS for at in self.seen.values())
            self.inbox.extend([MARKER] * min(living, MOST_WOKEN))

    def take_document(self, raw: bytes) -> bool:
        """Remove one such document from intake; False if somebody else did."""
        for found in self.intake:
            if length_of(found) == length_of(raw) and hand_out(found) == raw:
                self.intake.remove(found)
                return True
        return False

    def stamp(self) -> bool:
        """Note that the store lives; False while reaping has to stand still after a pause."""
        if 0 <= self.now - self._seen_ms < STAMPED_EVERY_MS:
            return self.now >= self._hold_until
        back = max(self._seen_ms, latest_span(self)) - self.now
        if back > 0:
            stamped_back = max(0, self._seen_ms - self.now)
            self._new_earliest |= set_back(self, back, stamped_back)
            self._hold_until -= stamped_back
        if self._seen_ms and self.now - self._seen_ms > max(self.lease_ms // 2, SHORTEST_GAP_MS):
            self._hold_until = self.now + self.lease_ms
        self._seen_ms = self.now
        return self.now >= self._hold_until

    def is_cordoned(self, incarnation: str) -> bool:
        """Whether the worker gets no jobs for now."""
        return self.cordons.by_whom(incarnation, self.now) is not Cordon.NOBODY

    def leases_of(self, incarnation: str) -> int:
        """How many jobs the worker holds."""
        running = self.in_state(JobState.RUNNING)
        return sum(1 for entry in running if entry.worker == incarnation)

    def forget_absent(self, ttl: timedelta) -> None:
        """Forget workers that were not seen for ``ttl``, their last reply too."""
        oldest = self.now - ttl // _MS
        for name, at in list(self.seen.items()):
            if at <= oldest:
                del self.seen[name]
                self.presence.pop(name, None)
                for kind in (False, True):
                    self.replies.pop((name, kind), None)
                self.cordons.note_person(name, self.now, cordons=False)
                self.stack_requests.forget(name)

    def tally(self, task: str, name: str, by: int = 1) -> None:
        """Count for the statistics."""
        self.points.tally(self.now, task or NO_TASK, name, by)

    def note_served(self, served: Mapping[str, RunTimes]) -> None:
        """Move each task's average service time towards what was just measured."""
        for task, ran in served.items():
            self.tally(task, "X", math.floor(ran.seconds * 1000 * 1000 + 0.5))
            for bucket, number in ran.buckets.items():
                self.tally(task, f"x{bucket}", number)
            mean = ran.seconds / ran.count
            known = self.service_time.get(task)
            weight = 1 - (1 - SERVICE_WEIGHT) ** ran.count
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
            last_run_now=self.run_now_nonces.get(cron.uid, ""),
            by_hand=self.runs_by_hand[cron.uid],
            suspension=self.suspensions.get(cron.uid),
        )

    def _forget(self, entry: Entry) -> None:
        del self.entries[entry.id]
        until = entry.changed_ms + TOMBSTONE_MS
        if until > self.now:
            self.tombstones[entry.id] = until

    def prune(self, limit: int) -> int:
        """Delete what is past retention."""
        over = sorted((until, name) for name, until in self.tombstones.items() if until <= self.now)
        for _, job_id in over[: TOMBSTONES_PER_JOB * limit]:
            del self.tombstones[job_id]
        pruned = 0
        for state in (JobState.SUCCEEDED, JobState.CANCELLED, JobState.DEAD):
            keep = self.limits.keep_dead if state is JobState.DEAD else self.limits.keep_succeeded
            found = self.in_state(state)
            surplus = max(0, len(found) - self.limits.keep_count)
            for rank, entry in enumerate(reversed(found)):
                expired = entry.changed_ms + keep // _MS <= self.now
                if pruned >= limit or not (expired or rank < surplus):
                    break
                self._forget(entry)
                pruned += 1
                if state is JobState.DEAD and not expired:
                    self.counters["dead_dropped"] += 1
        self.counters["pruned"] += pruned
        return pruned
