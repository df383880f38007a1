"""TaskQueue documents: what they may say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.documents import queue
from tidework.manifests import (
    EnvVar,
    ManifestErrors,
    PolicyType,
    RatePolicy,
    SelectPolicy,
    parse_document,
)
from tidework.manifests.worker_environment import worker_environment
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits


def test_a_short_document_gets_the_defaults_of_the_product() -> None:
    spec = queue().spec

    assert (spec.min_replicas, spec.max_replicas, spec.places) == (0, 5, 1)
    assert (spec.hard_timeout_seconds, spec.max_grace_seconds) == (600, 3600)
    assert (spec.recycle.jobs, spec.recycle.memory_mib) == (1000, 128)
    assert (spec.memory.limit_mib, spec.memory.most_percent) == (None, 90)
    scaling = spec.scaling
    assert (scaling.target_backlog_per_slot, scaling.target_wait_seconds) == (4.0, None)
    assert (scaling.idle_seconds, scaling.tolerance, scaling.fallback_seconds) == (30, 0.1, 60)


@pytest.mark.parametrize(
    ("fields", "capacity", "slots", "async_slots"),
    [
        ({}, 1, "1", "0"),
        ({"slots": 4}, 4, "4", "0"),
        ({"slots": 4, "asyncSlots": 0}, 4, "4", "0"),
        ({"asyncSlots": 100}, 100, "", "100"),
    ],
)
def test_a_queue_has_slots_or_async_slots(
    fields: dict[str, int], capacity: int, slots: str, async_slots: str
) -> None:
    found = queue(**fields)

    variables = worker_environment(found)
    assert found.capacity == capacity
    assert (variables["TIDEWORK_SLOTS"], variables["TIDEWORK_ASYNC_SLOTS"]) == (slots, async_slots)


def test_the_behavior_has_the_defaults_of_autoscaling_v2() -> None:
    behavior = queue().spec.scaling.behavior

    up, down = behavior.scale_up, behavior.scale_down
    assert (up.stabilization_window_seconds, down.stabilization_window_seconds) == (0, 300)
    assert (up.select_policy, down.select_policy) == (SelectPolicy.MAX, SelectPolicy.MAX)
    pods = RatePolicy(type=PolicyType.PODS, value=4, periodSeconds=15)
    percent = RatePolicy(type=PolicyType.PERCENT, value=100, periodSeconds=15)
    assert set(up.policies) == {pods, percent}
    assert down.policies == (percent,)


def test_a_field_of_one_direction_leaves_its_other_defaults() -> None:
    up = queue(
        scaling={"behavior": {"scaleUp": {"stabilizationWindowSeconds": 60}}}
    ).spec.scaling.behavior.scale_up

    assert up.stabilization_window_seconds == 60
    assert len(up.policies) == 2


def test_every_field_is_read() -> None:
    spec = queue(
        app="shop.tasks:app",
        image="registry.example/shop:1",
        minReplicas=1,
        maxReplicas=9,
        slots=4,
        hardTimeoutSeconds=60,
        maxGraceSeconds=90,
        leaseSeconds=5,
        scaling={"targetWaitSeconds": 2.5, "targetBacklogPerSlot": 2},
        retention={"succeededSeconds": 10, "deadSeconds": 20, "count": 30},
        recycle={"jobs": 7, "memoryMiB": 64},
        memory={"limitMiB": 700, "mostPercent": 75},
        env=[{"name": "LEVEL", "value": "5"}, {"name": "EMPTY"}],
    )

    assert (spec.spec.app, spec.spec.image) == ("shop.tasks:app", "registry.example/shop:1")
    assert (spec.spec.min_replicas, spec.spec.max_replicas, spec.spec.slots) == (1, 9, 4)
    assert (spec.spec.hard_timeout_seconds, spec.spec.max_grace_seconds) == (60, 90)
    assert spec.spec.scaling.target_wait_seconds == 2.5
    assert (spec.spec.recycle.jobs, spec.spec.recycle.memory_mib) == (7, 64)
    assert (spec.spec.memory.limit_mib, spec.spec.memory.most_percent) == (700, 75)
    assert spec.spec.env == (EnvVar(name="LEVEL", value="5"), EnvVar(name="EMPTY", value=""))
    assert spec.limits == QueueLimits(
        lease=timedelta(seconds=5),
        keep_succeeded=timedelta(seconds=10),
        keep_dead=timedelta(seconds=20),
        keep_count=30,
    )


def test_default_limits_are_those_of_the_model() -> None:
    assert queue().limits == QueueLimits()


def test_a_queue_is_named_by_namespace_and_name() -> None:
    assert queue().queue_name == QueueName("default", "emails")


@pytest.mark.parametrize("app", ["shop", "shop.tasks", "shop.tasks:app", "a_1.b2:c.d"])
def test_applications_are_named_as_python_imports_them(app: str) -> None:
    assert queue(app=app).spec.app == app


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"app": "shop/tasks.py"}, "spec.app: 'shop/tasks.py' is refused: name the module"),
        ({"app": "shop:"}, "spec.app: 'shop:' is refused"),
        ({"app": ""}, "spec.app: '' is refused"),
        ({"maxReplicas": 0}, "spec.maxReplicas: has to be 1 or more, not 0"),
        ({"minReplicas": -1}, "spec.minReplicas: has to be 0 or more, not -1"),
        ({"minReplicas": 7}, "spec.maxReplicas: 5 is below minReplicas, which is 7"),
        ({"minReplicas": True}, "spec.minReplicas: has to be a whole number, not true"),
        ({"slots": "4"}, 'spec.slots: has to be a whole number, not "4"'),
        ({"slots": 1.5}, "spec.slots: has to be a whole number, not 1.5"),
        (
            {"slots": 2, "asyncSlots": 9},
            "spec.asyncSlots: 9 is given beside slots, which is 2; keep asyncSlots for a queue of",
        ),
        ({"asyncSlots": -1}, "spec.asyncSlots: has to be 0 or more, not -1"),
        ({"asyncSlots": 1001}, "spec.asyncSlots: has to be 1000 or less, not 1001"),
        ({"asyncslots": 4}, "spec.asyncslots: unknown field; did you mean asyncSlots?"),
        ({"max_replicas": 4}, "spec.max_replicas: unknown field; did you mean maxReplicas?"),
        ({"zzz": 4}, "spec.zzz: unknown field; known here: app, image, imagePullPolicy,"),
        ({"scaling": {"tolerance": 2}}, "spec.scaling.tolerance: has to be 1.0 or less, not 2"),
        ({"scaling": {"targetWaitSeconds": 0}}, "targetWaitSeconds: has to be above 0.0, not 0"),
        ({"scaling": {"idleSeconds": 0}}, "spec.scaling.idleSeconds: has to be 1 or more, not 0"),
        ({"scaling": []}, "spec.scaling: has to be a mapping, not []"),
        ({"env": {"A": "1"}}, 'spec.env: has to be a list, not {"A": "1"}'),
        ({"env": [{"name": "A", "value": 5}]}, "spec.env[0].value: has to be text, not 5; put it"),
        ({"env": [{"name": "2A"}]}, "spec.env[0].name: '2A' is refused"),
        ({"env": [{"name": "A", "value": "\0"}]}, "cannot hold a NUL"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "spec.env: 'A' is given 2 times; keep one"),
        ({"recycle": {"memoryMib": 64}}, "unknown field; did you mean memoryMiB?"),
        ({"memory": {"limitMib": 64}}, "unknown field; did you mean limitMiB?"),
        ({"memory": {"mostPercent": 101}}, "spec.memory.mostPercent: has to be 100 or less"),
        (
            {"recycle": {"memoryMiB": 300}, "memory": {"limitMiB": 200}},
            "spec.recycle.memoryMiB: 300 is above memory.limitMiB, which is 200",
        ),
        (
            {"env": [{"name": "A", "valu": "1"}]},
            "spec.env[0].valu: unknown field; did you mean value?",
        ),
        (
            {"env": [{"name": "A", "x": "1"}]},
            "spec.env[0].x: unknown field; known here: name, value",
        ),
    ],
)
def test_what_is_not_served_is_refused(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        queue(**fields)

    assert len(caught.value.errors) == 1
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"policies": []}, "policies: needs 1 or more entries"),
        (
            {"selectPolicy": "max"},
            "selectPolicy: has to be 'Max', 'Min' or 'Disabled', not \"max\"",
        ),
        ({"stabilizationWindowSeconds": 3601}, "Seconds: has to be 3600 or less, not 3601"),
        ({"policies": [{"type": "Pods", "value": 1}]}, "policies[0].periodSeconds: is required"),
        (
            {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]},
            "policies[0].periodSeconds: has to be 1800 or less, not 1801",
        ),
        (
            {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 5}]},
            "policies[0].value: has to be 1 or more, not 0",
        ),
        (
            {"policies": [{"type": "Jobs", "value": 1, "periodSeconds": 5}]},
            "policies[0].type: has to be 'Pods' or 'Percent', not \"Jobs\"",
        ),
    ],
)
@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_behavior_has_the_bounds_of_autoscaling_v2(
    direction: str, rules: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ManifestErrors) as caught:
        queue(scaling={"behavior": {direction: rules}})

    assert len(caught.value.errors) == 1
    assert f"spec.scaling.behavior.{direction}." in str(caught.value)
    assert fault in str(caught.value)


def test_nulls_count_as_absent_as_the_api_server_prunes_them() -> None:
    spec = queue(retention=None, scaling={"tolerance": None}, image=None).spec

    assert spec.retention.count == 10_000
    assert spec.scaling.tolerance == 0.1


def test_a_document_of_the_cluster_is_read_with_all_that_kubernetes_adds() -> None:
    parsed = parse_document(
        {
            "apiVersion": "tidework.dev/v1alpha1",
            "kind": "TaskQueue",
            "metadata": {
                "name": "emails",
                "namespace": "shop",
                "uid": "0b6f5d0e-0000-4000-8000-000000000001",
                "creationTimestamp": "2030-01-31T06:00:00Z",
                "resourceVersion": "12",
                "managedFields": [{"manager": "kubectl"}],
                "labels": {"team": "mail"},
            },
            "spec": {"app": "shop.tasks"},
            "status": {"replicas": 3, "conditions": []},
        }
    )

    metadata = parsed.metadata
    assert (metadata.namespace, metadata.labels) == ("shop", {"team": "mail"})
    assert metadata.uid == "0b6f5d0e-0000-4000-8000-000000000001"
    assert metadata.creation_timestamp is not None
    assert metadata.creation_timestamp.isoformat() == "2030-01-31T06:00:00+00:00"
    assert parsed.status is None


def test_documents_cannot_be_changed() -> None:
    parsed = queue()

    with pytest.raises(ValueError, match="frozen"):
        setattr(parsed.spec, "slots", 5)  # noqa: B010 - types forbid the plain form
