"""Election: a Lease of coordination.k8s.io chooses the leader among the replicas.

As client-go does it (15/10/2 s): a holder counts until its record has not changed for one lease
duration by our own monotonic clock, whatever the clocks of others say.
Invariant, unlike client-go: losing touch with the API server stops nobody, another holder seen
does. So two may believe for a while that they lead; terms.py sees to it that one writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tidework.clock import Clock
from tidework_operator.cluster import Cluster, ClusterError, Kind, Object
from tidework_operator.patience import USUAL, Patience

logger = logging.getLogger(__name__)

LEASE_DURATION = timedelta(seconds=15)
RENEW_DEADLINE = timedelta(seconds=10)
RETRY_EVERY = timedelta(seconds=2)

_SERVER_FAULT = 500


@dataclass(frozen=True, slots=True)
class _Record:
    """What a Lease says. ``stamp`` changes with every renewal."""

    holder: str
    duration: timedelta
    stamp: str
    transitions: int
    acquired: str | None
    body: Object

    @classmethod
    def read(cls, body: Object) -> _Record:
        spec: dict[str, Any] = body.get("spec") or {}
        return cls(
            holder=spec.get("holderIdentity") or "",
            duration=timedelta(
                seconds=spec.get("leaseDurationSeconds") or LEASE_DURATION.total_seconds()
            ),
            stamp=repr(sorted(spec.items())),
            transitions=spec.get("leaseTransitions") or 0,
            acquired=spec.get("acquireTime"),
            body=body,
        )


class Election:
    """One candidate of one Lease; ``tick`` is for a Loop of its own.

    identity:  names this candidate
    marker:    a file that says that we lead, in a place that outlives a restart of the process;
               None = no such place
    on_change: called after ``leading`` changed

    tenure counts how often we became leader; confirmed counts the answers of the API server that
    said that we lead.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        namespace: str,
        name: str,
        identity: str,
        marker: Path | None = None,
        on_change: Callable[[], None] = lambda: None,
        patience: Patience = USUAL,
    ) -> None:
        self.leading = False
        self.tenure = 0
        self.confirmed = 0
        self.holder = ""
        self._cluster = cluster
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._marker = marker
        self._on_change = on_change
        self._look_within = patience.lease_look
        self._record: _Record | None = None
        self._seen_at = 0.0
        self._confirmed_at: float | None = None
        self._began_at = clock.monotonic()
        self._troubled = False

    async def tick(self) -> timedelta:
        """Look at the Lease once, take or renew it if we may; the wait until the next look."""
        try:
            async with asyncio.timeout(self._look_within.total_seconds()):
                await self._look()
        except TimeoutError:
            limit = self._look_within.total_seconds()
            self._bear(ClusterError("look at the Lease", 0, f"no answer within {limit:g} s"))
        except ClusterError as error:
            if error.is_conflict:
                # Somebody was faster: who, the next look tells.
                logger.info(
                    "the Lease changed under us: %s", error, extra={"event": "lease_changed"}
                )
            else:
                self._bear(error)
        else:
            self._troubled = False
        return RETRY_EVERY

    async def release(self) -> None:
        """Let another lead at once. For an orderly end: nothing of ours may write afterwards.

        Raises ClusterError; the Lease then expires by itself.
        """
        record = self._record
        if not self.leading:
            return
        self.leading = False
        self._on_change()
        if record is None or record.holder != self._identity:
            return
        now = _micro_time(self._clock.now())
        spec = {
            "leaseDurationSeconds": 1,
            "leaseTransitions": record.transitions,
            "acquireTime": now,
            "renewTime": now,
        }
        await self._cluster.replace(Kind.LEASE, {**record.body, "spec": spec})
        self._mark(leads=False)
        logger.info("released the Lease %s", self._name, extra={"event": "lease_released"})

    async def _look(self) -> None:
        body = await self._cluster.get(Kind.LEASE, self._namespace, self._name)
        if body is None:
            self._observe(_Record.read(await self._cluster.create(Kind.LEASE, self._lease(None))))
            return
        self._observe(_Record.read(body))
        record = self._record
        assert record is not None
        if record.holder in ("", self._identity) or self._has_expired(record):
            mine = self._lease(record)
            self._observe(_Record.read(await self._cluster.replace(Kind.LEASE, mine)))

    def _observe(self, record: _Record) -> None:
        now = self._clock.monotonic()
        if self._record is None or self._record.stamp != record.stamp:
            self._seen_at = now
        if self._record is None or self._record.holder != record.holder:
            logger.info(
                "the Lease is held by %s", record.holder or "nobody", extra={"event": "lease_held"}
            )
        self._record = record
        self.holder = record.holder
        if record.holder == self._identity:
            self._confirmed_at = now
            self.confirmed += 1
            self._start("holds the Lease")
        elif record.holder:
            self._stop(f"{record.holder} holds the Lease")

    def _has_expired(self, record: _Record) -> bool:
        return self._clock.monotonic() - self._seen_at > record.duration.total_seconds()

    def _lease(self, record: _Record | None) -> Object:
        now = _micro_time(self._clock.now())
        again = record is not None and record.holder == self._identity
        transitions = 0 if record is None else record.transitions + (0 if again else 1)
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(LEASE_DURATION.total_seconds()),
            "leaseTransitions": transitions,
            "acquireTime": record.acquired if record is not None and again else now,
            "renewTime": now,
        }
        if record is None:
            metadata: Object = {"namespace": self._namespace, "name": self._name}
            head = {"apiVersion": Kind.LEASE.value.api_version, "kind": Kind.LEASE.value.kind}
            return {**head, "metadata": metadata, "spec": spec}
        return {**record.body, "spec": spec}

    def _bear(self, error: ClusterError) -> None:
        """The API server gives no answer that helps."""
        if not self._troubled:
            self._troubled = True
            goes_on = "this replica goes on leading" if self.leading else "it stands by"
            logger.warning(
                "cannot look at the Lease, %s: %s",
                goes_on,
                error,
                extra={"event": "lease_unreadable"},
            )
        if self.leading or self._record is not None or not self._led_before():
            return
        # We led before a restart. Had another taken the Lease since, there would be two leaders
        # until the API server is back, of whom terms let one write. Nobody can take it meanwhile.
        away = error.status == 0 or error.status >= _SERVER_FAULT
        waited = self._clock.monotonic() - self._began_at
        if away and waited > LEASE_DURATION.total_seconds():
            self._start("led before its restart, and no API server says otherwise")

    def _start(self, why: str) -> None:
        if self.leading:
            return
        self.leading = True
        self.tenure += 1
        self._mark(leads=True)
        logger.info("this replica leads: it %s", why, extra={"event": "replica_leads"})
        self._on_change()

    def _stop(self, why: str) -> None:
        if self._led_before():
            self._mark(leads=False)
        if not self.leading:
            return
        self.leading = False
        logger.warning("this replica leads no more: %s", why, extra={"event": "replica_stands_by"})
        self._on_change()

    @property
    def is_confirmed(self) -> bool:
        """Do we lead, and did the API server say so within the renew deadline?"""
        at = self._confirmed_at
        if not self.leading or at is None:
            return False
        return self._clock.monotonic() - at <= RENEW_DEADLINE.total_seconds()

    def _led_before(self) -> bool:
        if self._marker is None:
            return False
        try:
            return self._marker.read_text() == self._identity
        except OSError:
            return False

    def _mark(self, *, leads: bool) -> None:
        if self._marker is None:
            return
        try:
            if leads:
                self._marker.write_text(self._identity)
            else:
                self._marker.unlink(missing_ok=True)
        except OSError as error:
            logger.warning(
                "cannot note in %s that this replica leads: %s",
                self._marker,
                error,
                extra={"event": "lead_not_noted"},
            )


def _micro_time(moment: datetime) -> str:
    """MicroTime of Kubernetes: RFC 3339 with six decimals."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
