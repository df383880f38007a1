"""TaskQueue and CronTask documents: what they may say, and reading them from files.

The models are the API: `tidework dev` reads them from files, the operator from the cluster, and the
CRDs are generated from them. What this version does not serve is refused, never ignored.
"""

from __future__ import annotations

from tidework.manifests.crontask import CatchUp, CronTask, CronTaskSpec
from tidework.manifests.faults import ManifestErrors
from tidework.manifests.metadata import API_VERSION, Metadata
from tidework.manifests.parsing import KINDS, parse_document
from tidework.manifests.pod import (
    EnvVar,
    ImagePullPolicy,
    PodMetadata,
    PodSpec,
    PodTemplate,
    Resources,
)
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
from tidework.manifests.status import (
    ConditionStatus,
    CronTaskStatus,
    CronVerdicts,
    ManualRun,
    StatusCondition,
    TaskQueueStatus,
)
from tidework.manifests.taskqueue import (
    CLUSTER_FIELDS,
    IMAGE_MISSING,
    Memory,
    Recycle,
    Retention,
    TaskQueue,
    TaskQueueSpec,
)

__all__ = [
    "API_VERSION",
    "CLUSTER_FIELDS",
    "IMAGE_MISSING",
    "KINDS",
    "Behavior",
    "CatchUp",
    "ConditionStatus",
    "CronTask",
    "CronTaskSpec",
    "CronTaskStatus",
    "CronVerdicts",
    "EnvVar",
    "ImagePullPolicy",
    "ManifestErrors",
    "Manifests",
    "ManualRun",
    "Memory",
    "Metadata",
    "PodMetadata",
    "PodSpec",
    "PodTemplate",
    "PolicyType",
    "RatePolicy",
    "Recycle",
    "Resources",
    "Retention",
    "ScaleDown",
    "ScaleUp",
    "Scaling",
    "ScalingRules",
    "SelectPolicy",
    "StatusCondition",
    "TaskQueue",
    "TaskQueueSpec",
    "TaskQueueStatus",
    "manifest_files",
    "parse_document",
    "read_manifests",
]
