"""Acts of leaders: terms, cordons, CronTasks; and looks at a queue."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from tests.property.broker_machine_acts import Player, act, pick
from tests.property.broker_machine_draws import (
    ERRORS,
    FIRES,
    TASKS,
    TERMS,
    UIDS,
    WHICH,
    FirePlan,
)
from tests.property.broker_machine_stage import Stage
from tests.property.broker_machine_twins import Page
from tests.property.broker_machine_workers import WorkerActs
from tidework.clock import from_ms
from tidework.model.backlog import JobFilter
from tidework.model.durability import Durability
from tidework.model.fire import ConcurrencyPolicy, FireRequest, Verdict, fire_id
from tidework.model.job import FINISHED_STATES, Job, JobState

FIRST_FIRE = 1_700_000_000
HOLDERS = st.sampled_from(("p", "q"))


class LeaderActs(Player):
    """Who leads, and what it says to the queue. ``of``: a term, counted from the current one."""

    @act(1, holder=HOLDERS, seconds=st.sampled_from((5, 60)))
    def lead(self, holder: str, seconds: int) -> None:
        self.twins.ask("lead", holder, timedelta(seconds=seconds))

    @act(1, holder=st.sampled_from(("p", "q", "")))
    def change_leader(self, holder: str) -> None:
        if holder:
            self.twins.ask("resign", holder)
        else:
            self.twins.ask("take_term")

    @act(1, of=TERMS, count=st.integers(0, 2), workers=st.integers(0, 3))
    def drain(self, of: int, count: int, workers: int) -> None:
        ttl = timedelta(seconds=30)
        self.twins.ask("drain", self._term(of), self.incarnations[:workers], count, ttl=ttl)

    @act(1, of=TERMS, durability=st.sampled_from(Durability))
    def configure(self, of: int, durability: Durability) -> None:
        self.twins.ask("configure", self._term(of), durability)

    def _term(self, of: int) -> int:
        return max(0, self.twins.stored.term + of)


class CronActs(LeaderActs, WorkerActs):
    """CronTasks come and go and fire."""

    @act(1, of=TERMS, uids=st.sets(UIDS))
    def mirror(self, of: int, uids: set[str]) -> None:
        documents = {uid: b'{"n":%d}' % len(self.twins.sent) for uid in sorted(uids)}
        self.twins.ask("put_crontasks", self._term(of), documents)

    @act(1, of=TERMS, uid=UIDS, minutes=st.integers(0, 4), reset=st.booleans())
    def admit_cron(self, of: int, uid: str, minutes: int, reset: bool) -> None:
        self._mirror(uid)
        fingerprint = "f2" if minutes == 4 else "f1"
        start = FIRST_FIRE + 60 * minutes
        self.twins.ask("admit_cron", self._term(of), uid, fingerprint, start, reset=reset)

    @act(3, of=TERMS, uid=UIDS, plans=FIRES)
    def fire(self, of: int, uid: str, plans: list[FirePlan]) -> None:
        crons = self.twins.stored.crons
        if f"{uid}/watermark" not in crons:
            self.admit_cron(0, uid, 0, reset=False)
        at = int(crons.get(f"{uid}/watermark", FIRST_FIRE))
        requests = []
        for plan in plans:
            at += 60 * plan.step
            requests.append(self._request(uid, at, plan))
        self.twins.ask("decide_fires", self._term(of), requests)

    @act(2, uid=UIDS, plans=st.tuples(*[st.sampled_from(("Allow", "Replace", "Forbid"))] * 3))
    def fire_and_run(self, uid: str, plans: tuple[str, ...]) -> None:
        """Runs are under way when the next ones come."""
        for policy in plans:
            self.fire(0, uid, [FirePlan(1, policy=policy)])
            self.work(0, 3, [])

    @act(1, of=TERMS, uid=UIDS, nonce=st.integers(0, 1), by_hand=st.booleans())
    def run_now(self, of: int, uid: str, nonce: int, by_hand: bool) -> None:
        self._mirror(uid)
        name = self.new_id("m") if by_hand else f"n{nonce}"
        job = Job(f"{uid}-run-{name}", TASKS[0], {}, created_at=self.twins.now / 1000)
        self.ids.append(job.id)
        self.twins.ask("run_now", None if by_hand else self._term(of), uid, name, job)

    @act(2, uid=UIDS, seconds=st.sampled_from((None, 1, 30)), who=st.sampled_from(("ann", "bob")))
    def suspend_and_fire(self, uid: str, seconds: int | None, who: str) -> None:
        """Two people may do so at once, and it may be over, or not, when the next fire is due."""
        until = None if seconds is None else from_ms(self.twins.now + 1000 * seconds)
        self.twins.ask("suspend_cron", uid, by=who, reason="a repair", until=until)
        self.twins.let_pass(1_000)
        self.fire(0, uid, [FirePlan(1)])

    @act(1, uid=UIDS)
    def resume_cron(self, uid: str) -> None:
        self.twins.ask("resume_cron", uid)

    @act(
        2,
        uid=UIDS,
        back=st.integers(-1, 4),
        count=st.integers(1, 3),
        policy=st.sampled_from(ConcurrencyPolicy),
    )
    def backfill(self, uid: str, back: int, count: int, policy: ConcurrencyPolicy) -> None:
        """Instants that ran, were missed, or lie behind the watermark; some of them again."""
        last = int(self.twins.stored.crons.get(f"{uid}/watermark", FIRST_FIRE)) - 60 * back
        fires = [last - 60 * i for i in range(count)]
        jobs = {
            at: Job(fire_id(uid, at), TASKS[1], {}, created_at=self.twins.now / 1000)
            for at in fires
        }
        self.ids += [job.id for job in jobs.values()]
        self.twins.ask("backfill", uid, jobs, policy=policy, note="ann: a lost day")

    def _mirror(self, uid: str) -> None:
        """Nobody admits what is not mirrored."""
        if uid not in self.twins.stored.crontasks:
            self.mirror(0, {uid, *self.twins.stored.crontasks})

    def _request(self, uid: str, at: int, plan: FirePlan) -> FireRequest:
        job = Job(fire_id(uid, at), TASKS[1], {}, created_at=self.twins.now / 1000)
        wanted = Verdict(plan.wanted)
        if wanted is Verdict.ENQUEUED:
            self.ids.append(job.id)
        return FireRequest(
            uid,
            plan.fingerprint,
            at,
            wanted,
            ConcurrencyPolicy(plan.policy),
            plan.max_runs,
            job if wanted is Verdict.ENQUEUED else None,
        )


class LookActs(Player):
    """Read-outs. They have to tell the same, and change nothing."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._page: tuple[JobState, JobFilter, Page] | None = None

    @act(1, which=WHICH, seconds=st.sampled_from((0, 5, 100)))
    def look(self, which: int, seconds: int) -> None:
        ask = self.twins.ask
        ask("gather", horizon=timedelta(seconds=seconds))
        ask("stats")
        ask("statistics")
        ask("list_errors", limit=1 + which)
        ask("workers")
        ask("crontasks")
        for uid in ("c1", "c2"):
            ask("cron_record", uid)
            ask("fires", uid)
        self.twins.compare()

    @act(1, which=WHICH)
    def get_job(self, which: int) -> None:
        job_id = self.pick_id(which)
        self.twins.ask("get_job", job_id)
        self.twins.ask("forgotten_at", job_id)

    @act(
        6,
        which=WHICH,
        by=st.sampled_from(("", "task", "error")),
        since=st.sampled_from((None, -20_000, 0, 3_000)),
        until=st.sampled_from((None, None, -1_000, 0, 9_000)),
        limit=st.integers(1, 3),
        pages=st.integers(0, 3),
    )
    def list_jobs(
        self, which: int, by: str, since: int | None, until: int | None, limit: int, pages: int
    ) -> None:
        """The first page of jobs of a state that has some, and the next ones."""
        state = pick(self._states(), which)
        timed = state in FINISHED_STATES or state is JobState.SCHEDULED
        now = self.twins.now
        within = JobFilter(
            task=TASKS[limit % 2] if by == "task" and state in FINISHED_STATES else "",
            error=ERRORS[limit % 2].fingerprint if by == "error" and state is JobState.DEAD else "",
            since=from_ms(now + since) if since is not None and timed else None,
            until=from_ms(now + until) if until is not None and timed else None,
        )
        page = self.twins.next_page(state, within, limit, (None, None))
        self._page = (state, within, page)
        for _ in range(pages):
            self.list_further(limit)

    @act(2, limit=st.integers(1, 3))
    def list_further(self, limit: int) -> None:
        """Time and other acts may have come between the pages."""
        if self._page is not None and self._page[2][0] is not None:
            state, within, page = self._page
            self._page = (state, within, self.twins.next_page(state, within, limit, page))

    def _states(self) -> list[JobState]:
        stored = self.twins.stored
        parts = {state: state.value for state in JobState} | {JobState.RUNNING: "leases"}
        return [state for state in JobState if getattr(stored, parts[state])] or [JobState.READY]
