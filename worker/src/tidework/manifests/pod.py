"""The pod of a worker: what a TaskQueue says of it beyond image and command.

Where Kubernetes' own form is large a field is an open object: the API server checks it when the
operator applies the Deployment, and the TaskQueue's conditions tell what it said. `tidework dev`
starts processes, no pods, and ignores all of this but plain environment variables.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    ConfigDict,
    Field,
    model_validator,
)

from tidework.manifests.map_keys import ForeignKeys, QualifiedKeys
from tidework.manifests.part import (
    LIST_KEYS,
    LIST_TYPE,
    Form,
    OpenObject,
    Part,
    cel,
    cel_rules,
    checked,
    refuse,
)
from tidework.manifests.pod_objects import (
    NO_SUCH_VOLUME,
    OWN_VOLUME,
    OWN_VOLUMES,
    Container,
    ContainerSecurityContext,
    EnvSource,
    SecurityContext,
    Spread,
    Toleration,
    Volume,
    VolumeMount,
    repeated,
    volume_faults,
)
from tidework.manifests.quantities import Quantity, resource_faults, resource_rules


class ImagePullPolicy(StrEnum):
    """As in Kubernetes."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


ImageName = Annotated[
    str,
    Field(min_length=1, max_length=1024),
    Form(
        r"[A-Za-z0-9][A-Za-z0-9._:/@-]*",
        "name an image without blanks, such as registry.example/shop/worker:1.4",
    ),
]
VariableName = Annotated[
    str,
    Field(max_length=256),
    Form("[A-Za-z_][A-Za-z0-9_]*", "use letters, digits and '_', not starting with a digit"),
]
VariableValue = Annotated[
    str, checked(lambda text: "\0" not in text, "an environment variable cannot hold a NUL")
]
Argument = Annotated[str, Field(max_length=32_768)]
LabelValue = Annotated[
    str,
    Field(max_length=63),
    Form(
        "([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?",
        "use letters, digits, '-', '_' and '.', starting and ending with a letter or digit",
    ),
]
ObjectName = Annotated[
    str,
    Field(max_length=253),
    Form(
        "[a-z0-9]([-a-z0-9.]*[a-z0-9])?",
        "use a-z, 0-9, '-' and '.', starting and ending with a letter or digit",
    ),
]


class EnvVar(Part):
    """One environment variable."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel(
                "!has(self.valueFrom) || !has(self.value) || self.value == ''",
                "value and valueFrom are both given; keep one of them",
                "valueFrom",
            )
        )
    )

    name: VariableName = Field(description="Name of the variable.")
    value: VariableValue = Field(default="", max_length=131_072, description="Its value, as text.")
    value_from: OpenObject | None = Field(
        default=None,
        description="Where the value comes from instead, as in a Pod: a key of a Secret or "
        "ConfigMap, or a field of the pod. `tidework dev` leaves such a variable as it finds it "
        "in its own environment.",
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.value_from is not None and self.value:
            refuse([("valueFrom", "value is given too; keep one of them")])
        return self


class Resources(Part):
    """Resources of the worker container, as in Kubernetes."""

    model_config = ConfigDict(json_schema_extra=cel_rules(*resource_rules()))

    requests: dict[str, Quantity] = Field(
        default={}, max_length=32, description="Resources reserved for each replica."
    )
    limits: dict[str, Quantity] = Field(
        default={},
        max_length=32,
        description="The most that a replica may use. Near its memory limit a worker ends its "
        "largest child first.",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        refuse(resource_faults(self.requests, self.limits))
        return self


class ObjectReference(Part):
    """An object of the same namespace."""

    name: ObjectName = Field(description="Its name.")


class PodMetadata(Part):
    """Labels and annotations of the pods, besides those that the operator sets."""

    labels: Annotated[
        dict[str, LabelValue],
        QualifiedKeys(),
        ForeignKeys(("app.kubernetes.io/name", "app.kubernetes.io/managed-by")),
    ] = Field(default={}, max_length=64, description="More labels of the pods.")
    annotations: Annotated[
        dict[str, str],
        QualifiedKeys(),
        ForeignKeys(("controller.kubernetes.io/pod-deletion-cost",)),
    ] = Field(default={}, max_length=64, description="More annotations of the pods.")


class PodSpec(Part):
    """What the operator merges into the pods, field by field as in a Pod.

    volumeMounts, envFrom and containerSecurityContext concern the worker container, all others
    the pod.
    """

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel(
                "!has(self.volumeMounts) || self.volumeMounts.all(mount, has(self.volumes) && "
                "self.volumes.exists(volume, volume.name == mount.name))",
                NO_SUCH_VOLUME,
                "volumeMounts",
            ),
            cel(
                "!has(self.volumes) || "
                f"self.volumes.all(volume, !volume.name.startsWith('{OWN_VOLUMES}'))",
                OWN_VOLUME,
                "volumes",
            ),
        )
    )

    node_selector: Annotated[dict[str, LabelValue], QualifiedKeys()] = Field(
        default={}, max_length=64, description="Labels that a node has to have."
    )
    affinity: OpenObject | None = Field(
        default=None, description="Preferred and required places, as in a Pod."
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(), max_length=64, description="Taints that do not keep the pods away."
    )
    topology_spread_constraints: tuple[Spread, ...] = Field(
        default=(), max_length=32, description="How the pods are spread over nodes and zones."
    )
    priority_class_name: ObjectName | None = Field(
        default=None, description="PriorityClass of the pods."
    )
    runtime_class_name: ObjectName | None = Field(
        default=None, description="RuntimeClass of the pods."
    )
    image_pull_secrets: tuple[ObjectReference, ...] = Field(
        default=(), max_length=32, description="Secrets with which the image is pulled."
    )
    init_containers: tuple[Container, ...] = Field(
        default=(),
        max_length=16,
        description="Containers that run before the worker.",
        json_schema_extra={LIST_TYPE: "map", LIST_KEYS: ["name"]},
    )
    volumes: tuple[Volume, ...] = Field(
        default=(),
        max_length=64,
        description="More volumes, to be mounted by volumeMounts.",
        json_schema_extra={LIST_TYPE: "map", LIST_KEYS: ["name"]},
    )
    volume_mounts: tuple[VolumeMount, ...] = Field(
        default=(),
        max_length=64,
        description="More mounts of the worker container.",
        json_schema_extra={LIST_TYPE: "map", LIST_KEYS: ["mountPath"]},
    )
    env_from: tuple[EnvSource, ...] = Field(
        default=(),
        max_length=64,
        description="ConfigMaps and Secrets whose keys become environment variables of the worker "
        "container.",
    )
    security_context: SecurityContext | None = Field(
        default=None,
        description="Fields of the pods' securityContext, put over those that the operator sets "
        "(Pod Security `restricted`).",
    )
    container_security_context: ContainerSecurityContext | None = Field(
        default=None,
        description="Fields of the worker container's securityContext, put over those that the "
        "operator sets (Pod Security `restricted`, read-only root filesystem).",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        refuse(
            [
                *volume_faults(self.volumes, self.volume_mounts),
                *repeated("volumes", (volume["name"] for volume in self.volumes)),
                *repeated("volumeMounts", (mount["mountPath"] for mount in self.volume_mounts)),
                *repeated("initContainers", (found["name"] for found in self.init_containers)),
            ]
        )
        return self


class PodTemplate(Part):
    """What the pods of the workers have besides image, command, environment and resources."""

    metadata: PodMetadata = Field(
        default=PodMetadata(), description="More labels and annotations of the pods."
    )
    spec: PodSpec = Field(default=PodSpec(), description="Fields merged into the pods.")
