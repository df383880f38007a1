"""TaskQueue and CronTask documents: what they may say, and reading them from files.

The models are the API: `tidework dev` reads them from files, the operator from the cluster, and the
CRDs are generated from them. What this version does not serve is refused, never ignored.
"""

from __future__ import annotations

from tidework.manifests.crontask import CatchUp, CronTask, CronTaskSpec
from tidework.manifests.faults import ManifestErrors
from tidework.manifests.metadata import API_VERSION, Metadata
from tidework.manifests.parsing import KINDS, parse_document
from tidework.manifests.reading import Manifests, manifest_files, read_manifests
from tidework.manifests.scaling import (
    Behavior,
    PolicyType,
    RatePolicy,
    ScaleDown,
    ScaleUp,
    Scaling,
    ScalingRules,
    SelectPolicy,
)
from tidework.manifests.taskqueue import EnvVar, Recycle, Retention, TaskQueue, TaskQueueSpec

__all__ = [
    "API_VERSION",
    "KINDS",
    "Behavior",
    "CatchUp",
    "CronTask",
    "CronTaskSpec",
    "EnvVar",
    "ManifestErrors",
    "Manifests",
    "Metadata",
    "PolicyType",
    "RatePolicy",
    "Recycle",
    "Retention",
    "ScaleDown",
    "ScaleUp",
    "Scaling",
    "ScalingRules",
    "SelectPolicy",
    "TaskQueue",
    "TaskQueueSpec",
    "manifest_files",
    "parse_document",
    "read_manifests",
]
