"""What a scaling decision is made from, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tidework.manifests import Scaling
from tidework.model.backlog import QueueLoad
from tidework.scaling.history import History


@dataclass(frozen=True, slots=True)
class ReplicaStates:
    """Replicas by state; each is in one.

    starting: not yet able to claim; idle: holds no lease; busy: holds one or more
    draining: on its way out for good and no longer part of ``ScalingInput.replicas``. A replica
              that is merely cordoned can be called back, so it counts as idle or busy.
    """

    starting: int = 0
    idle: int = 0
    busy: int = 0
    draining: int = 0


@dataclass(frozen=True, slots=True)
class ScalingInput:
    """One queue at one moment.

    load:          what was gathered; None if gathering failed, which ``error`` then explains
    now:           seconds of a monotonic clock, the same clock for all decisions of a history
    replicas:      the count that was asked for last (in a cluster: the Deployment's replicas)
    slots:         jobs that one replica runs at the same time
    prescale:      replicas that known fires will need; 0 without any
    app_version:   of the application that replicas are started with; '' = nobody knows
    """

    load: QueueLoad | None
    now: float
    replicas: int
    states: ReplicaStates
    slots: int
    min_replicas: int
    max_replicas: int
    scaling: Scaling = field(default_factory=Scaling)
    prescale: int = 0
    app_version: str = ""
    error: str = ""
    history: History = field(default_factory=History)


class Limit(StrEnum):
    """Why the replicas are not what the load asks for."""

    MIN_REPLICAS = "minReplicas"
    MAX_REPLICAS = "maxReplicas"
    DRAINING = "draining"
    SCALE_UP_WINDOW = "scaleUpWindow"
    SCALE_DOWN_WINDOW = "scaleDownWindow"
    SCALE_UP_POLICY = "scaleUpPolicy"
    SCALE_DOWN_POLICY = "scaleDownPolicy"
    IDLE_COUNTDOWN = "idleCountdown"
    BUSY = "busy"
    LOAD_UNKNOWN = "loadUnknown"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and why.

    replicas: the count to ask for: no busy replica is taken away by it
    wanted:   what the load asks for, within minReplicas and maxReplicas
    drain_to: where ``replicas`` goes once busy replicas are rid of their jobs: so many may be left
              uncordoned. Equal to ``replicas`` unless busy replicas are in the way of shrinking.
    reason:   one line in words, with the numbers
    limits:   what made the replicas differ from what the load asks for
    history:  for the next decision
    """

    replicas: int
    wanted: int
    drain_to: int
    reason: str
    history: History
    limits: tuple[Limit, ...] = ()

    @property
    def limited(self) -> bool:
        """Is the count another one than the load asks for?"""
        return bool(self.limits)
