"""Load in, replicas and the reason out: pure, the same for `tidework dev` and the operator."""

from __future__ import annotations

from tidework.scaling.decide import decide
from tidework.scaling.decision import Decision, Limit, ReplicaStates, ScalingInput
from tidework.scaling.history import History

__all__ = ["Decision", "History", "Limit", "ReplicaStates", "ScalingInput", "decide"]
