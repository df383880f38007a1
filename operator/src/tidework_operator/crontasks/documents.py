"""CronTasks as the scheduler takes them, read from the inventory's objects.

A reading is kept until the spec or the request for a manual run changes: our own status writes,
which are most of the changes, cost nothing. What is wrong with a document is part of its reading.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidework.clock import Clock
from tidework.errors import ConfigurationError, ManifestError, ScheduleError
from tidework.manifests import CronTask, ManifestErrors, parse_document
from tidework.scheduler.documents import spec_of
from tidework.scheduler.spec import RUN_NOW_ANNOTATION, CronSpec
from tidework_operator.cluster import Object
from tidework_operator.conditions import find_condition

SCHEDULE_VALID = "ScheduleValid"

_SCHEDULE_FIELDS = frozenset(
    {
        "schedule",
        "schedules",
        "every",
        "phase",
        "at",
        "exclude",
        "timeZone",
        "dst",
        "startTime",
        "endTime",
    }
)


@dataclass(frozen=True, slots=True)
class CronReading:
    """One CronTask as its document says it.

    spec:  None if it cannot be served; then ``faults`` says why
    queue: as it is written, '' if it cannot be read
    """

    spec: CronSpec | None
    queue: str
    faults: tuple[ManifestError, ...] = ()

    @property
    def schedule_faults(self) -> tuple[ManifestError, ...]:
        """What is wrong with when it fires."""
        return tuple(fault for fault in self.faults if _is_of_schedule(fault.field))


def _is_of_schedule(field: str) -> bool:
    """``field`` may be a place in a list: ``spec.schedules[1]``."""
    path = field.partition("[")[0]
    return path.startswith("spec.") and path.removeprefix("spec.") in _SCHEDULE_FIELDS


class CronTaskDocuments:
    """Reads the CronTasks of the inventory, by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: dict[str, tuple[object, CronReading]] = {}
        self._mended: dict[str, datetime] = {}

    def read(self, found: Object) -> CronReading:
        """One object, which has a uid."""
        metadata = found["metadata"]
        uid = metadata["uid"]
        annotations = metadata.get("annotations") or {}
        content = (metadata.get("generation"), annotations.get(RUN_NOW_ANNOTATION))
        known = self._read.get(uid)
        if known is not None and known[0] == content:
            return known[1]
        if self._was_invalid(found, known):
            # As for every changed schedule: nothing that was due meanwhile fires now.
            self._mended[uid] = self._clock.now()
        reading = self._fresh(found)
        self._read[uid] = (content, reading)
        return reading

    def keep(self, uids: Collection[str]) -> None:
        """Forget all others."""
        self._read = {uid: known for uid, known in self._read.items() if uid in uids}
        self._mended = {uid: when for uid, when in self._mended.items() if uid in uids}

    def _was_invalid(self, found: Object, known: tuple[object, CronReading] | None) -> bool:
        if known is not None:
            return known[1].spec is None
        condition = find_condition(found.get("status"), SCHEDULE_VALID)
        return condition is not None and condition.get("status") != "True"

    def _fresh(self, found: Object) -> CronReading:
        metadata = found["metadata"]
        place = f"CronTask {metadata['namespace']}/{metadata['name']}"
        queue = (found.get("spec") or {}).get("queue")
        queue = queue if isinstance(queue, str) else ""
        try:
            document = parse_document(found, namespace=metadata["namespace"], file=place)
            assert isinstance(document, CronTask)
            spec = spec_of(document, self._clock.now(), last_scheduled=self._last(found))
        except ManifestErrors as errors:
            return CronReading(None, queue, errors.errors)
        except (ScheduleError, ConfigurationError) as error:
            return CronReading(None, queue, (ManifestError(str(error), file=place, field="spec"),))
        return CronReading(spec, queue)

    def _last(self, found: Object) -> datetime | None:
        """Where a record that was lost starts from."""
        known = (
            _moment((found.get("status") or {}).get("lastScheduleTime")),
            self._mended.get(found["metadata"]["uid"]),
        )
        return max((moment for moment in known if moment is not None), default=None)


def _moment(text: Any) -> datetime | None:
    """A time of the API server; None for what is none."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else None
