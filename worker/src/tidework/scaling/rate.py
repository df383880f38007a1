"""The policies of ``behavior``: how far the count may move now, given what it moved before.

The arithmetic is the one of the HPA controller (kubernetes, pkg/controller/podautoscaler/
horizontal.go, calculateScaleUpLimitWithScalingRules and ...ScaleDown...), in whole numbers, but for
zero, which the HPA does not know: a share of nothing bounds nothing, so a period that began at 0
allows the step to any count, unless a policy of the type Pods says otherwise.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tidework.manifests import PolicyType, RatePolicy, ScalingRules, SelectPolicy
from tidework.scaling.history import History


@dataclass(frozen=True, slots=True)
class Bound:
    """The furthest count that is allowed now, and by what."""

    replicas: int
    words: str


def highest(current: int, rules: ScalingRules, history: History, now: float) -> Bound:
    """The most replicas that growth may reach now; never below ``current``."""
    if rules.select_policy is SelectPolicy.DISABLED:
        return Bound(current, "scaleUp is disabled")
    bounds = [
        Bound(_grown(_at_start(policy, current, history, now), policy), _words("scaleUp", policy))
        for policy in rules.policies
    ]
    choose = min if rules.select_policy is SelectPolicy.MIN else max
    found = choose(bounds, key=lambda bound: bound.replicas)
    return Bound(max(current, found.replicas), found.words)


def lowest(current: int, rules: ScalingRules, history: History, now: float) -> Bound:
    """The fewest replicas that shrinking may reach now; never above ``current``."""
    if rules.select_policy is SelectPolicy.DISABLED:
        return Bound(current, "scaleDown is disabled")
    bounds = [
        Bound(
            _shrunk(_at_start(policy, current, history, now), policy), _words("scaleDown", policy)
        )
        for policy in rules.policies
    ]
    choose = max if rules.select_policy is SelectPolicy.MIN else min
    found = choose(bounds, key=lambda bound: bound.replicas)
    return Bound(max(0, min(current, found.replicas)), found.words)


def _at_start(policy: RatePolicy, current: int, history: History, now: float) -> int:
    """The replicas at the start of the policy's period."""
    return max(0, current - history.change_within(policy.period_seconds, now))


def _grown(start: int, policy: RatePolicy) -> int:
    if policy.type is PolicyType.PODS:
        return start + policy.value
    if start == 0:
        return sys.maxsize
    return -(-start * (100 + policy.value) // 100)  # rounded up, so that it always grows


def _shrunk(start: int, policy: RatePolicy) -> int:
    if policy.type is PolicyType.PODS:
        return start - policy.value
    return start * (100 - policy.value) // 100


def _words(direction: str, policy: RatePolicy) -> str:
    unit = "replicas" if policy.type is PolicyType.PODS else "%"
    return f"{direction} policy of {policy.value} {unit} in {policy.period_seconds} s"
