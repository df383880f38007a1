"""What decides over the replicas of a queue: its load, a pin, or somebody else.

Who wins, from the strongest: the annotation ``tidework.dev/autoscaling: disabled`` (whoever sets
the Deployment's replicas), ``spec.replicas`` of the TaskQueue (kubectl scale, a foreign HPA; not
bounded by minReplicas and maxReplicas), the load within minReplicas and maxReplicas. In the last
two cases a count that somebody sets on the Deployment itself is only where the next change starts.
"""

from __future__ import annotations

from tidework.manifests import TaskQueue
from tidework.model.backlog import QueueLoad
from tidework.scaling import Decision, History, ScalingInput, decide
from tidework_operator.autoscaling.fleet import Fleet
from tidework_operator.naming import AUTOSCALING_ANNOTATION
from tidework_operator.observations import Trouble


def is_left_alone(document: TaskQueue) -> bool:
    """Does somebody else set the Deployment's replicas?"""
    return document.metadata.annotations.get(AUTOSCALING_ANNOTATION) == "disabled"


def pause_of(document: TaskQueue) -> Trouble | None:
    """Why the load is not meant to be followed; None if it is."""
    if is_left_alone(document):
        return Trouble(
            "Disabled",
            f"annotation {AUTOSCALING_ANNOTATION} is `disabled`: the operator does not "
            "change the Deployment's replicas; remove the annotation to follow the load",
        )
    if document.spec.replicas is not None:
        return Trouble(
            "Pinned",
            f"spec.replicas is {document.spec.replicas} (set by kubectl scale, an HPA or a "
            "manifest); remove it to follow the load",
        )
    return None


def choose(
    document: TaskQueue,
    fleet: Fleet,
    load: QueueLoad | None,
    error: str,
    now: float,
    history: History,
) -> Decision:
    """The decision for a queue. ``load`` None: unknown because of ``error``."""
    spec = document.spec
    if is_left_alone(document):
        count = fleet.replicas
        return Decision(count, count, count, "left alone, as the annotation asks", History())
    if spec.replicas is not None:
        return pinned(spec.replicas, fleet, is_readable=load is not None)
    return decide(
        ScalingInput(
            load=load,
            now=now,
            replicas=fleet.replicas,
            states=fleet.states,
            slots=document.capacity,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            scaling=spec.scaling,
            error=error,
            history=history,
            app_version=fleet.app_version,
        )
    )


def pinned(replicas: int, fleet: Fleet, *, is_readable: bool) -> Decision:
    """Straight to the pin; what is too much drains first, and stays while leases are unknown."""
    drain_to = replicas if is_readable else max(replicas, fleet.replicas)
    words = f"spec.replicas pins {replicas}"
    if drain_to != replicas:
        words += f"; holding {drain_to}, as it is unknown which workers hold jobs"
    return Decision(
        replicas=max(drain_to, min(fleet.states.busy, fleet.replicas)),
        wanted=replicas,
        drain_to=drain_to,
        reason=words,
        history=History(),
    )
