"""Load in, replicas and the reason out: pure, and the same in `tidework dev` and in the operator."""

from __future__ import annotations

from tidework.scaling.decide import decide
from tidework.scaling.decision import Decision, Limit, ReplicaStates, ScalingInput
from tidework.scaling.history import History

__all__ = ["Decision", "History", "Limit", "ReplicaStates", "ScalingInput", "decide"]
