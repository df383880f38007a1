"""The status of a CronTask: what the scheduler knows of it, put into the form of the CRD. Pure.

What the scheduler does not know any more stays as it was written before: a record that Redis lost
starts again from lastScheduleTime, so that must never be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidework.manifests import CronTaskStatus, CronVerdicts, ManualRun
from tidework.manifests.status import MAX_ACTIVE
from tidework.model.fire import Verdict
from tidework.model.job import FINISHED_STATES, JobState
from tidework.scheduler.status import CronStatus
from tidework_operator.cluster import Object
from tidework_operator.conditions import Condition, merge_conditions

MAX_NONCE = 1024

_REMEMBERED = ("lastScheduleTime", "lastJob", "lastResult", "verdicts", "runNow")
_FIELDS = tuple(field.alias or name for name, field in CronTaskStatus.model_fields.items())


@dataclass(frozen=True, slots=True)
class Runs:
    """Of its jobs. last: state of the last run's, None if unknown; manual: the last manual run."""

    last: JobState | None = None
    manual: ManualRun | None = None


def wanted_status(
    found: Object,
    before: Mapping[str, Any],
    conditions: Sequence[Condition],
    seen: CronStatus | None,
    runs: Runs,
    now: datetime,
) -> dict[str, Any]:
    """What the status should be.

    before: what it is
    seen:   None for a CronTask that is not served
    """
    generation = found["metadata"].get("generation", 0)
    unreadable = seen is not None and seen.trouble
    lasting = _FIELDS if unreadable else _REMEMBERED
    kept = {name: before[name] for name in lasting if before.get(name) is not None}
    wanted = kept | (_not_served() if seen is None else _served(seen, runs, kept))
    if runs.manual is not None:
        wanted["runNow"] = runs.manual.model_dump(mode="json", by_alias=True)
    wanted["observedGeneration"] = generation
    known = before.get("conditions") or ()
    wanted["conditions"] = merge_conditions(known, conditions, generation=generation, now=now)
    return wanted


def patch_of(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one to the other: fields that are to go are null, equal ones absent."""
    return {name: wanted.get(name) for name in _FIELDS if wanted.get(name) != before.get(name)}


def _not_served() -> dict[str, Any]:
    return CronTaskStatus().model_dump(
        mode="json", by_alias=True, include={"next_schedule_times", "active", "active_count"}
    )


def _served(seen: CronStatus, runs: Runs, kept: Mapping[str, Any]) -> dict[str, Any]:
    verdicts = seen.verdicts
    document = CronTaskStatus(
        nextScheduleTimes=seen.next_fires,
        active=seen.active[:MAX_ACTIVE],
        activeCount=len(seen.active),
        verdicts=CronVerdicts(
            enqueued=verdicts[Verdict.ENQUEUED],
            skippedOverlap=verdicts[Verdict.SKIPPED_OVERLAP],
            missedDeadline=verdicts[Verdict.MISSED_DEADLINE],
            missedCatchUp=verdicts[Verdict.MISSED_CATCH_UP],
        ),
    ).document()
    del document["conditions"]
    if seen.trouble:
        # Nothing could be read: what was known of the past stays, the future is reckoned.
        return {"nextScheduleTimes": document["nextScheduleTimes"]}
    if seen.last_fire is not None:
        document |= _last_run(seen, runs, kept)
    return document


def _last_run(seen: CronStatus, runs: Runs, kept: Mapping[str, Any]) -> dict[str, Any]:
    assert seen.last_fire is not None
    result = None if runs.last is None else runs.last.value
    if result is None and kept.get("lastJob") == seen.last_job:
        # Past its retention: an end that was seen stays true.
        old = kept.get("lastResult")
        result = old if old in FINISHED_STATES else None
    at = seen.last_fire.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"lastScheduleTime": at, "lastJob": seen.last_job or None, "lastResult": result}
