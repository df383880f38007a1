"""What is to be said of a TaskQueue: conditions from document, objects, Redis and workers. Pure.

Ready sums up whether the queue is served: its spec is valid, its objects are in the cluster, Redis
answers to us as leader, and workers start when they are wanted. No worker at all is no fault.
Messages carry no numbers that move by themselves; those stand in the status' fields and in ``why``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidework.maintenance.upkeep import DEAD_ALARM
from tidework.manifests import ManifestErrors
from tidework.model.job import JobState
from tidework.model.lease import QueueLimits
from tidework.scaling import Limit
from tidework_operator.conditions import Condition
from tidework_operator.hearing import WELL
from tidework_operator.observations import Observation, Trouble

READY = "Ready"
REDIS_REACHABLE = "RedisReachable"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"
WORKERS_HEALTHY = "WorkersHealthy"
DEAD_LETTERS_KEPT = "DeadLettersKept"

_NOT_YET = "NotYetObserved"

_LIMITS: dict[Limit, tuple[str, str]] = {
    Limit.MAX_REPLICAS: (
        "TooManyReplicas",
        "the load asks for more than maxReplicas; raise it for shorter waits",
    ),
    Limit.DRAINING: (
        "Draining",
        "pods that still drain count against maxReplicas; more can start as they end",
    ),
    Limit.BUSY: ("Busy", "fewer replicas are wanted, and go as soon as their jobs have ended"),
    Limit.SCALE_UP_POLICY: ("ScaleUpLimit", "scaling.behavior.scaleUp bounds the growth"),
    Limit.SCALE_DOWN_POLICY: ("ScaleDownLimit", "scaling.behavior.scaleDown bounds the shrinking"),
    Limit.SCALE_UP_WINDOW: ("ScaleUpStabilized", "scaleUp's window has not passed yet"),
    Limit.SCALE_DOWN_WINDOW: ("ScaleDownStabilized", "scaleDown's window has not passed yet"),
}
"""Most telling first. The countdown to zero is not a limit but the way there, and minReplicas are
what an idle queue is asked to have: said at each of them it would hide the limits that matter."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A TaskQueue whose spec can be read, and what became of it.

    objects: why its objects could not be applied, None if they were
    workers: why its workers do not start, None if no problems are known
    secret:  the Secret with the URL of its workers' Redis
    keeps:   how many dead letters it keeps at most
    seen:    None until the autoscaler looked at it
    """

    objects: Trouble | None
    workers: Trouble | None
    seen: Observation | None
    secret: str = ""
    keeps: int = QueueLimits().keep_count


def judge(subject: Subject) -> tuple[Condition, ...]:
    """All conditions."""
    redis = _redis(subject.seen)
    healthy = _workers(subject)
    active = _active(subject.seen)
    return (
        _ready(subject, redis, active, healthy),
        redis,
        active,
        _limited(subject.seen),
        healthy,
        _dead_letters(subject),
    )


def judge_invalid(errors: ManifestErrors) -> tuple[Condition, ...]:
    """The conditions of a TaskQueue whose spec cannot be read: what runs is left as it is."""
    faults = "; ".join(
        f"{error.field}: {error.reason}" if error.field else error.reason for error in errors.errors
    )
    words = "checked once the spec is corrected"
    return (
        Condition(READY, False, "SpecInvalid", f"running pods stay as they are: {faults}"),
        *(
            Condition(type_, None, "SpecInvalid", words)
            for type_ in (
                REDIS_REACHABLE,
                SCALING_ACTIVE,
                SCALING_LIMITED,
                WORKERS_HEALTHY,
                DEAD_LETTERS_KEPT,
            )
        ),
    )


def _redis(seen: Observation | None) -> Condition:
    if seen is None:
        return Condition(REDIS_REACHABLE, None, _NOT_YET, "Redis was not asked yet")
    if seen.redis_trouble is not None:
        trouble = seen.redis_trouble
        return Condition(REDIS_REACHABLE, False, trouble.reason, trouble.message)
    return Condition(REDIS_REACHABLE, True, "Reachable", "the operator reads the queue in Redis")


def _active(seen: Observation | None) -> Condition:
    if seen is None or seen.scaling is None:
        return Condition(SCALING_ACTIVE, None, _NOT_YET, "no decision was made yet")
    inactive = seen.scaling.inactive
    if inactive is not None:
        return Condition(SCALING_ACTIVE, False, inactive.reason, inactive.message)
    return Condition(SCALING_ACTIVE, True, "FollowsLoad", "the replicas follow the load")


def _limited(seen: Observation | None) -> Condition:
    if seen is None or seen.scaling is None:
        return Condition(SCALING_LIMITED, None, _NOT_YET, "no decision was made yet")
    for limit, (reason, words) in _LIMITS.items():
        if limit in seen.scaling.limits:
            return Condition(SCALING_LIMITED, True, reason, words)
    return Condition(SCALING_LIMITED, False, "AsWanted", "the replicas are as asked for")


def _workers(subject: Subject) -> Condition:
    seen = subject.seen
    if subject.workers is not None:
        return _false(WORKERS_HEALTHY, subject.workers)
    if seen is None:
        return Condition(WORKERS_HEALTHY, None, _NOT_YET, "the workers were not looked at yet")
    if seen.silent:
        words = _silence(seen.silent, seen.heard, subject.secret)
        return Condition(WORKERS_HEALTHY, False, "WorkersSilent", words)
    if not seen.pods:
        return Condition(WORKERS_HEALTHY, True, "NoWorkers", "there are none at present")
    return Condition(WORKERS_HEALTHY, True, "Healthy", "no problems are known")


def _dead_letters(subject: Subject) -> Condition:
    if subject.seen is None or subject.seen.stats is None:
        return Condition(DEAD_LETTERS_KEPT, None, _NOT_YET, "the dead letters were not counted yet")
    dead = subject.seen.stats.states[JobState.DEAD]
    remedy = "replay or purge them (`tidework dead`), or raise retention.count"
    if dead >= subject.keeps:
        words = f"there are more than retention.count, the oldest are dropped: {remedy}"
        return Condition(DEAD_LETTERS_KEPT, False, "DeadLettersDropped", words)
    if dead >= subject.keeps * DEAD_ALARM:
        words = f"they are close to retention.count, after which the oldest are dropped: {remedy}"
        return Condition(DEAD_LETTERS_KEPT, False, "DeadLettersMany", words)
    return Condition(DEAD_LETTERS_KEPT, True, "BelowLimit", "none is dropped for their number")


def _silence(pods: Sequence[str], heard: str, secret: str) -> str:
    """What is known of the cause: what a worker says itself, else what is left to look at."""
    them = f"ready, but Redis hears nothing of them: {_some(pods)}; "
    if heard == WELL:
        return (
            f"{them}{pods[0]} says that its Redis answers, so it is another one than the "
            f"operator's: compare the URL in Secret {secret} with the operator's connection"
        )
    if heard:
        return (
            f"{them}{pods[0]} says: {heard}; it reads Secret {secret} of its own namespace, "
            "and again within two minutes after that has changed"
        )
    return (
        f"{them}nor do they answer the operator: a NetworkPolicy may be in the way, or Secret "
        f"{secret} names another Redis than the operator's connection; their log says more"
    )


def _ready(subject: Subject, redis: Condition, active: Condition, healthy: Condition) -> Condition:
    if subject.objects is not None:
        return _false(READY, subject.objects)
    for other in (redis, healthy):
        if other.status is not True:
            return Condition(READY, other.status, other.reason, other.message)
    if active.reason == "NotLed":
        return Condition(READY, None, active.reason, active.message)
    if active.reason == "NoDeployment":
        # What keeps them from being made would have been told above.
        return Condition(READY, None, "Starting", "the objects of its workers are being made")
    if active.reason == "ScaleFailed":
        return Condition(READY, False, active.reason, active.message)
    seen = subject.seen
    if seen is not None and not seen.pods:
        return Condition(READY, True, "ScaledToZero", "workers start as soon as there are jobs")
    return Condition(READY, True, "Served", "workers serve the queue")


def _false(type_: str, trouble: Trouble) -> Condition:
    return Condition(type_, False, trouble.reason, trouble.message)


def _some(names: Sequence[str], most: int = 5) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
