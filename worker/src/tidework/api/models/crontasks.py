"""CronTasks as the API shows them, their runs, and what is asked for and answered by acts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tidework.access.redaction import Redaction, Redactor
from tidework.api.models.moments import Moment
from tidework.crontasks.backfill import BackfillPlan, BackfillStep
from tidework.crontasks.found import FoundCronTask
from tidework.crontasks.runs import RunSummary
from tidework.manifests.timing import summary_of
from tidework.model.fire import ConcurrencyPolicy, Fire, FireKind, Suspension, Verdict
from tidework.model.job import JobState
from tidework.model.schedules.cron import load_zone
from tidework.scheduler.status import CronStatus

MOST_ACTIVE = 20


class SuspensionModel(BaseModel):
    """A person has the CronTask suspended, whatever its document says."""

    by: str
    reason: str
    since: Moment
    until: Moment | None = Field(description="When it ends by itself; null: by `resume` alone.")


class NextFireModel(BaseModel):
    """One fire that is to come."""

    at: Moment
    local: str = Field(description="The same moment by the clock of the CronTask's zone.")


class CronTaskModel(BaseModel):
    """A CronTask and how it stands."""

    name: str
    namespace: str
    queue: str
    uid: str
    task: str
    schedule: str = Field(description="As the document has it.")
    schedule_in_words: str
    time_zone: str
    concurrency_policy: ConcurrencyPolicy
    suspended: bool = Field(description="By its document, or by a person.")
    suspended_by_document: bool
    suspension: SuspensionModel | None
    reason: str = Field(description="Why it does not fire, or not at its next time; '' if it does.")
    next_fires: list[NextFireModel]
    last_fire: Moment | None
    last_job: str | None
    active: list[str] = Field(description=f"Ids of unfinished runs, {MOST_ACTIVE} at most.")
    active_count: int
    verdicts: dict[Verdict, int] = Field(description="How many fires got which verdict.")
    by_hand: int = Field(description="Runs that people asked for.")


class UnreadableModel(BaseModel):
    """A CronTask whose document this server cannot read: a later version has written it."""

    name: str
    queue: str
    reason: str


class RunSummaryModel(BaseModel):
    """What the history adds up to: of the last 100 fires and runs."""

    succeeded: int
    dead: int
    cancelled: int
    unfinished: int
    without_job: int = Field(description="Fires that were skipped or missed.")
    success_rate: float | None = Field(description="Of those that succeeded or are dead; 0 to 1.")
    mean_duration_seconds: float | None
    longest_duration_seconds: float | None


class CronTaskDetail(CronTaskModel):
    """All that is known of one CronTask. spec: of its document, as its scheduler serves it"""

    runs: RunSummaryModel
    spec: dict[str, Any]
    redacted_fields: list[str] = Field(description="Paths of values that nobody is shown.")


class RunModel(BaseModel):
    """One entry of the history: a run, or fires that came to no job."""

    kind: FireKind
    verdict: Verdict
    due: Moment
    first_due: Moment = Field(description="Of the first fire that this entry stands for.")
    count: int = Field(description="How many neighbouring fires of one verdict it stands for.")
    decided_at: Moment
    lateness_seconds: float = Field(description="From the due instant to the verdict.")
    job: str | None
    outcome: JobState | None = Field(description="How the run ended; null before that.")
    start_delay_seconds: float | None = Field(
        description="From the due instant to the first claim."
    )
    duration_seconds: float | None = Field(description="Of the last attempt.")
    ended_at: Moment | None
    attempts: int
    note: str = Field(description="Who asked for it, and why.")


class RunOrder(BaseModel):
    """params: in place of those of the document"""

    model_config = ConfigDict(extra="forbid")

    params: dict[str, Any] | None = None
    reason: str = Field(default="", max_length=300)


class RunAnswer(BaseModel):
    """created: false if the idempotency key has made this run before."""

    job: str
    created: bool


class SuspendOrder(BaseModel):
    """Why, and until when; without an end until somebody resumes it."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=300)
    until: AwareDatetime | None = None


class ResumeAnswer(BaseModel):
    """resumed: false if nobody had it suspended. suspension: the one that was ended"""

    resumed: bool
    suspension: SuspensionModel | None


class BackfillOrder(BaseModel):
    """A range of instants, both ends included. until: now by default"""

    model_config = ConfigDict(extra="forbid")

    since: AwareDatetime
    until: AwareDatetime | None = None
    reason: str = Field(default="", max_length=300)
    dry_run: bool = Field(default=False, description="Only show the instants.")


class BackfillAnswer(BaseModel):
    """What a backfill comes to.

    Where ``left`` is not 0, runs of this CronTask may not overlap: ask for the same once more when
    the run ``waits_for`` has ended. What ran is not run again.
    """

    fires: list[Moment]
    count: int
    one_at_a_time: bool
    decided_until: Moment | None = Field(
        description="Where the range goes on behind what is decided: the scheduler does the rest."
    )
    enqueued: int
    known: int = Field(description="Those that ran, or were asked for before.")
    left: int
    waits_for: str | None


def crontask_model(found: FoundCronTask, status: CronStatus) -> CronTaskModel:
    """A CronTask of a list."""
    return CronTaskModel(**_fields(found, status))


def crontask_detail(
    found: FoundCronTask, status: CronStatus, runs: RunSummary, redaction: Redaction
) -> CronTaskDetail:
    """One CronTask, without the values that nobody is to see."""
    redactor = Redactor(redaction)
    spec = dict(found.document["spec"])
    if "params" in spec:
        spec["params"] = redactor.value("params", spec["params"])
    return CronTaskDetail(
        **_fields(found, status),
        runs=summary_model(runs),
        spec=spec,
        redacted_fields=redactor.fields,
    )


def summary_model(runs: RunSummary) -> RunSummaryModel:
    """What a history adds up to."""
    mean, longest = runs.mean_duration, runs.longest
    return RunSummaryModel(
        succeeded=runs.succeeded,
        dead=runs.dead,
        cancelled=runs.cancelled,
        unfinished=runs.unfinished,
        without_job=runs.skipped,
        success_rate=runs.success_rate,
        mean_duration_seconds=None if mean is None else mean.total_seconds(),
        longest_duration_seconds=None if longest is None else longest.total_seconds(),
    )


def _fields(found: FoundCronTask, status: CronStatus) -> dict[str, Any]:
    crontask = found.crontask
    spec = crontask.spec
    zone = load_zone(spec.time_zone)
    suspension = status.suspension
    return {
        "name": found.name,
        "namespace": found.queue.namespace,
        "queue": found.queue.name,
        "uid": found.uid,
        "task": spec.task,
        "schedule": summary_of(found.document["spec"]),
        "schedule_in_words": found.in_words,
        "time_zone": spec.time_zone,
        "concurrency_policy": spec.concurrency_policy,
        "suspended": status.suspended,
        "suspended_by_document": spec.suspend,
        "suspension": None if suspension is None else suspension_model(suspension),
        "reason": status.reason,
        "next_fires": [
            NextFireModel(at=at, local=at.astimezone(zone).isoformat()) for at in status.next_fires
        ],
        "last_fire": status.last_fire,
        "last_job": status.last_job or None,
        "active": list(status.active[:MOST_ACTIVE]),
        "active_count": len(status.active),
        "verdicts": dict(status.verdicts),
        "by_hand": status.by_hand,
    }


def suspension_model(found: Suspension) -> SuspensionModel:
    """A person's suspension."""
    return SuspensionModel(by=found.by, reason=found.reason, since=found.since, until=found.until)


def run_model(fire: Fire) -> RunModel:
    """An entry of the history."""
    delay, duration = fire.start_delay, fire.duration
    return RunModel(
        kind=fire.kind,
        verdict=fire.verdict,
        due=fire.due,
        first_due=fire.first_due,
        count=fire.count,
        decided_at=fire.decided_at,
        lateness_seconds=fire.lateness.total_seconds(),
        job=fire.job_id or None,
        outcome=fire.outcome,
        start_delay_seconds=None if delay is None else delay.total_seconds(),
        duration_seconds=None if duration is None else duration.total_seconds(),
        ended_at=fire.ended_at,
        attempts=fire.attempts,
        note=fire.note,
    )


def backfill_answer(plan: BackfillPlan, step: BackfillStep | None) -> BackfillAnswer:
    """A backfill; ``step`` is None of one that is only shown."""
    fires: Sequence[datetime] = plan.fires
    return BackfillAnswer(
        fires=list(fires),
        count=len(fires),
        one_at_a_time=plan.one_at_a_time,
        decided_until=plan.until,
        enqueued=0 if step is None else step.enqueued,
        known=0 if step is None else step.known,
        left=len(fires) if step is None else len(step.left),
        waits_for=None if step is None else step.waits_for or None,
    )
