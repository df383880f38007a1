"""The status of a TaskQueue: its fields from what was observed, and when they are worth a write.

Pure. What moves by itself (ages, counts, countdowns in ``why``) is rounded, and written at most
once per QUIET; what people and programs wait for (conditions, replicas) is written at once. So an
idle queue is not written at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tidework.manifests import TaskQueueStatus
from tidework.model.job import JobState
from tidework_operator.cluster import Object
from tidework_operator.conditions import Condition, merge_conditions
from tidework_operator.naming import selector_text, worker_selector
from tidework_operator.observations import Observation

QUIET = timedelta(seconds=5)

_LONGEST_WHY = 4096
_PROMPT = (
    "observedGeneration",
    "replicas",
    "wantedReplicas",
    "readyReplicas",
    "workers",
    "selector",
)


def make_status(
    found: Object, conditions: Sequence[Condition], seen: Observation | None, now: datetime
) -> Object:
    """The status as the API server takes it: fields of which nothing is known are left out.

    found: the TaskQueue's object, whose present status says since when conditions hold
    """
    metadata = found["metadata"]
    generation = metadata.get("generation", 0)
    before = found.get("status") or {}
    fields: Object = {"observedGeneration": generation}
    if seen is not None:
        fields |= _fields(metadata["name"], seen)
    return {
        **fields,
        "conditions": merge_conditions(
            before.get("conditions") or (), conditions, generation=generation, now=now
        ),
    }


def differs(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Would writing ``status`` over ``before`` change anything?"""
    return any(before.get(field) != value for field, value in status.items())


def is_urgent(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Does it differ in something that somebody may wait for?"""
    if any(status[field] != before.get(field) for field in _PROMPT if field in status):
        return True
    return _verdicts(status) != _verdicts(before)


def round_age(seconds: float) -> int:
    """As coarse as it is old: to 1 s, 10 s or whole minutes."""
    step = 1 if seconds < 10 else 10 if seconds < 600 else 60
    return int(seconds // step) * step


def _fields(name: str, seen: Observation) -> Object:
    present = [
        pod
        for pod in seen.pods
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]
    status: Object = {
        "replicas": len(present),
        "readyReplicas": sum(_is_ready(pod) for pod in present),
        "selector": selector_text(worker_selector(name)),
    }
    if seen.scaling is not None:
        status["wantedReplicas"] = seen.scaling.wanted
        status["workers"] = f"{status['readyReplicas']}/{seen.scaling.wanted}"
        status["why"] = seen.scaling.why[:_LONGEST_WHY]
        if seen.scaling.last_scale is not None:
            status["lastScaleTime"] = seen.scaling.last_scale.replace(microsecond=0)
    if seen.stats is not None:
        states = seen.stats.states
        status |= {
            "backlog": seen.stats.backlog,
            "running": states[JobState.RUNNING],
            "scheduled": states[JobState.SCHEDULED],
            "dead": states[JobState.DEAD],
            "oldestAgeSeconds": round_age(seen.stats.oldest_age),
        }
    # Through the model of the CRD, so that the API server will take it.
    return TaskQueueStatus(**status).model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude_none=True
    )


def _is_ready(pod: Object) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in pod.get("status", {}).get("conditions") or ()
    )


def _verdicts(status: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    return [
        (found.get("type"), found.get("status"), found.get("reason"))
        for found in status.get("conditions") or ()
    ]
