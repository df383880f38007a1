"""Events about our objects: few, with stable CamelCase reasons, never one per job.

The same event is told once per ``QUIET``; what repeats in between is counted and added to the
series of the event that is there, as events.k8s.io/v1 has it. The name of an event is derived
from what it says, so that the next leader goes on with the series of the last one.
An event is a courtesy: when it cannot be posted, that is logged and nothing else.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidework.clock import Clock
from tidework_operator.cluster import Cluster, ClusterError, Kind, Object

logger = logging.getLogger(__name__)

QUIET = timedelta(minutes=10)
COMPONENT = "tidework-operator"

_MOST_REMEMBERED = 2000
_NOT_FOUND = 404
_LONGEST_NOTE = 1024  # bounds of the API server
_LONGEST_INSTANCE = 128


@dataclass(slots=True)
class _Told:
    """An event: when we posted it last (monotonic), how often in all, and how often since."""

    at: float
    count: int = 0
    unsaid: int = 0


class Events:
    """Posts events. Needs the verbs create and patch on them, no more.

    instance: this replica, named in each event
    """

    def __init__(self, cluster: Cluster, clock: Clock, *, instance: str) -> None:
        self.posted = 0
        self.failures = 0
        self._cluster = cluster
        self._clock = clock
        self._instance = instance[:_LONGEST_INSTANCE]
        self._told: dict[str, _Told] = {}

    async def post(
        self, about: Object, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Tell something about an object: ``kubectl describe`` shows it. Never raises."""
        event = self._event(about, reason, message, warning=warning)
        now = self._clock.monotonic()
        name = event["metadata"]["name"]
        told = self._told.get(name)
        if told is None:
            told = self._told[name] = _Told(now)
            self._forget_old(now)
        elif now - told.at < QUIET.total_seconds():
            told.unsaid += 1
            return
        told.at = now
        told.count, told.unsaid = told.count + 1 + told.unsaid, 0
        try:
            await self._tell(event, told)
        except ClusterError as error:
            self.failures += 1
            # At most one attempt per QUIET: an API server in trouble needs no events.
            logger.warning(
                "event %s about %s is lost: %s",
                reason,
                event["regarding"],
                error,
                extra={"event": "event_lost"},
            )
        else:
            self.posted += 1

    async def _tell(self, event: Object, told: _Told) -> None:
        if told.count > 1 and await self._add_to_series(event, told):
            return
        try:
            await self._cluster.create(Kind.EVENT, event)
        except ClusterError as error:
            if not error.is_conflict:
                raise
            # Another leader told it, or we did in another life.
            told.count = max(told.count, 2)
            await self._add_to_series(event, told)

    async def _add_to_series(self, event: Object, told: _Told) -> bool:
        """False if the event is gone: the API server keeps events for an hour."""
        metadata = event["metadata"]
        series = {"series": {"count": told.count, "lastObservedTime": event["eventTime"]}}
        try:
            await self._cluster.patch(Kind.EVENT, metadata["namespace"], metadata["name"], series)
        except ClusterError as error:
            if error.status != _NOT_FOUND:
                raise
            return False
        return True

    def _event(self, about: Object, reason: str, message: str, *, warning: bool) -> Object:
        metadata = about["metadata"]
        said = "\0".join((metadata.get("uid", ""), reason, message, str(warning)))
        digest = hashlib.sha256(said.encode()).hexdigest()[:16]
        return {
            "apiVersion": Kind.EVENT.value.api_version,
            "kind": Kind.EVENT.value.kind,
            "metadata": {
                "name": f"{metadata['name']}.{digest}",
                "namespace": metadata["namespace"],
            },
            "eventTime": self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": COMPONENT,
            "reportingInstance": self._instance,
            "action": reason,
            "reason": reason,
            "regarding": _reference(about),
            "note": _cut(message),
            "type": "Warning" if warning else "Normal",
        }

    def _forget_old(self, now: float) -> None:
        if len(self._told) <= _MOST_REMEMBERED:
            return
        quiet = QUIET.total_seconds()
        self._told = {name: told for name, told in self._told.items() if now - told.at < quiet}
        while len(self._told) > _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]


def _reference(about: Object) -> dict[str, Any]:
    metadata = about["metadata"]
    reference = {
        "apiVersion": about.get("apiVersion"),
        "kind": about.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
    }
    return {name: value for name, value in reference.items() if value}


def _cut(message: str) -> str:
    """The API server bounds bytes; characters that do not fit are left away whole."""
    raw = message.encode()
    if len(raw) <= _LONGEST_NOTE:
        return message
    return raw[: _LONGEST_NOTE - 3].decode(errors="ignore") + "..."
