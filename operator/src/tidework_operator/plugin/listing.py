"""``kubectl tidework get``: the queues and CronTasks of a namespace, side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tidework.manifests.timing import summary_of
from tidework_operator.cluster import Object
from tidework_operator.conditions import find_condition
from tidework_operator.plugin.tables import shown, since, table, until

_QUEUES = (
    *("TASKQUEUE", "WORKERS"),
    *("JOBS WAITING", "JOBS RUNNING", "JOBS LATER", "DEAD LETTERS", "OLDEST", "STATE"),
)
_CRONTASKS = ("CRONTASK", "SCHEDULE", "ZONE", "LAST", "RESULT", "NEXT", "ACTIVE", "STATE")


def queue_table(found: Sequence[Object], *, all_namespaces: bool) -> str:
    """TaskQueues; workers that are ready are shown beside those that are wanted."""
    rows = [_queue_row(each) for each in found]
    return _with_namespaces(_QUEUES, found, rows, all_namespaces=all_namespaces)


def crontask_table(found: Sequence[Object], now: datetime, *, all_namespaces: bool) -> str:
    """CronTasks."""
    rows = [_crontask_row(each, now) for each in found]
    return _with_namespaces(_CRONTASKS, found, rows, all_namespaces=all_namespaces)


def _with_namespaces(
    head: tuple[str, ...],
    found: Sequence[Object],
    rows: list[tuple[str, ...]],
    *,
    all_namespaces: bool,
) -> str:
    if not all_namespaces:
        return table(head, rows)
    spaces = [each["metadata"]["namespace"] for each in found]
    return table(
        ("NAMESPACE", *head),
        [(space, *row) for space, row in zip(spaces, rows, strict=True)],
    )


def _queue_row(found: Object) -> tuple[str, ...]:
    status = found.get("status") or {}
    numbers = (shown(status.get(name)) for name in ("backlog", "running", "scheduled", "dead"))
    age = status.get("oldestAgeSeconds")
    oldest = "" if age is None else f"{age}s"
    workers = shown(status.get("workers"))
    return found["metadata"]["name"], workers, *numbers, oldest, _state(found)


def _crontask_row(found: Object, now: datetime) -> tuple[str, ...]:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    following = status.get("nextScheduleTimes") or [None]
    return (
        found["metadata"]["name"],
        summary_of(spec),
        shown(spec.get("timeZone", "UTC")),
        since(status.get("lastScheduleTime"), now),
        shown(status.get("lastResult")),
        until(following[0], now),
        shown(status.get("activeCount")),
        _state(found),
    )


def _state(found: Object) -> str:
    """The reason of the condition Ready, marked if it is not true."""
    ready = find_condition(found.get("status"), "Ready")
    if ready is None:
        return "(no operator has looked at it)"
    return str(ready["reason"]) if ready["status"] == "True" else f"!{ready['reason']}"
