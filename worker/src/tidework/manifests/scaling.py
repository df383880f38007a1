"""How the replicas of a TaskQueue follow its load: targets, and the bounds on each change.

``behavior`` is the one of autoscaling/v2, field by field, with its defaults
(https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/).
What the fields do together is written in tidework.scaling.decide.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from tidework.manifests.part import Part


class SelectPolicy(StrEnum):
    """Which of several policies counts."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class PolicyType(StrEnum):
    """What the value of a policy counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class RatePolicy(Part):
    """A bound on the change of the replicas within a period."""

    type: PolicyType = Field(
        description="Pods: value is a number of replicas. Percent: it is a share of the replicas "
        "at the start of the period; a period that starts at 0 is not bounded by a share."
    )
    value: int = Field(
        ge=1, le=2_147_483_647, description="How much may change within periodSeconds."
    )
    period_seconds: int = Field(ge=1, le=1800, description="Length of the period, in seconds.")


class ScalingRules(Part):
    """Rules of one direction."""

    stabilization_window_seconds: int = Field(
        ge=0,
        le=3600,
        description="The count follows the most cautious recommendation of so many past seconds.",
    )
    select_policy: SelectPolicy = Field(
        default=SelectPolicy.MAX,
        description="Max: the policy that allows the largest change counts. Min: the smallest. "
        "Disabled: no change in this direction.",
    )
    policies: tuple[RatePolicy, ...] = Field(
        min_length=1, max_length=10, description="Bounds on the rate of change; at least one."
    )


class ScaleUp(ScalingRules):
    """Rules of growth. The default doubles or adds 4 replicas in 15 s, and is unbounded from 0."""

    stabilization_window_seconds: int = Field(
        default=0,
        ge=0,
        le=3600,
        description="Growth follows the lowest recommendation of so many past seconds; "
        "0: it follows the load at once.",
    )
    policies: tuple[RatePolicy, ...] = Field(
        default=(
            RatePolicy(type=PolicyType.PODS, value=4, periodSeconds=15),
            RatePolicy(type=PolicyType.PERCENT, value=100, periodSeconds=15),
        ),
        min_length=1,
        max_length=10,
        description="Bounds on growth; at least one.",
    )


class ScaleDown(ScalingRules):
    """Rules of shrinking. Busy workers are never taken away, whatever the policies allow."""

    stabilization_window_seconds: int = Field(
        default=300,
        ge=0,
        le=3600,
        description="Shrinking follows the highest recommendation of so many past seconds. "
        "It does not hold back the step to zero, for which idleSeconds counts.",
    )
    policies: tuple[RatePolicy, ...] = Field(
        default=(RatePolicy(type=PolicyType.PERCENT, value=100, periodSeconds=15),),
        min_length=1,
        max_length=10,
        description="Bounds on shrinking; at least one.",
    )


class Behavior(Part):
    """As in autoscaling/v2."""

    scale_up: ScaleUp = Field(default=ScaleUp(), description="Rules of growth.")
    scale_down: ScaleDown = Field(default=ScaleDown(), description="Rules of shrinking.")


class Scaling(Part):
    """How many replicas a load asks for, and how fast the count follows."""

    target_backlog_per_slot: float = Field(
        default=4.0,
        ge=0.01,
        le=100_000,
        description="Jobs, waiting and running, that one slot is meant to have before it. "
        "Lower: more replicas and shorter waits.",
    )
    target_wait_seconds: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="The wait target: replicas are added so that the backlog is worked off within "
        "so many seconds, judged by the measured service time. Without it only "
        "targetBacklogPerSlot counts.",
    )
    idle_seconds: int = Field(
        default=30,
        ge=1,
        le=86_400,
        description="With minReplicas 0: replicas go to zero after so many seconds in which "
        "nothing waited, ran or was due soon. scaleDown's window does not come on top of it; "
        "scaleDown's policies apply.",
    )
    tolerance: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="No change while the load asks for a count this close to the current one "
        "(0.1 = 10 %).",
    )
    fallback_seconds: int = Field(
        default=60,
        ge=1,
        le=86_400,
        description="While the load cannot be read the count is held; after so many seconds it is "
        "raised to minReplicas if it is lower. It never shrinks meanwhile.",
    )
    behavior: Behavior = Field(
        default=Behavior(), description="Bounds on each change, as in autoscaling/v2."
    )
