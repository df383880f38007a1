"""A CronJob of Kubernetes into a CronTask, a TaskQueue and the command that it runs. Pure.

As the CronJob controller: ``dst: Clock``, the same deadline, policy and suspension, backoffLimit as
attempts. The container's image, variables, volumes and resources become those of the queue's pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidework.errors import ConfigurationError, ScheduleError
from tidework.manifests.timing import reason_of
from tidework.migration.takeover import API_VERSION, Note, Taken, TakenCommand, Takeover
from tidework.model.schedules.cron_parse import parse_fields

_BACKOFF_LIMIT = 6  # Kubernetes' default
_DAY_S = 86_400
_EVERY = "@every "
_GO_DURATION = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")

# Of the pod, and of its container: our name in template.spec.
_OF_POD = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "runtimeClassName",
    "imagePullSecrets",
    "initContainers",
    "volumes",
    "securityContext",
)
_OF_CONTAINER = {
    "volumeMounts": "volumeMounts",
    "envFrom": "envFrom",
    "securityContext": "containerSecurityContext",
}
_UNDERSTOOD_OF_POD = frozenset({*_OF_POD, "containers", "restartPolicy"})
_UNDERSTOOD_OF_CONTAINER = frozenset(
    {*_OF_CONTAINER, "name", "image", "command", "args", "env", "resources"}
)
# Filled in by the API server, and of no consequence here.
_SILENT = frozenset(
    {
        "dnsPolicy",
        "schedulerName",
        "terminationGracePeriodSeconds",
        "imagePullPolicy",
        "terminationMessagePath",
        "terminationMessagePolicy",
    }
)


@dataclass(frozen=True, slots=True)
class CronJobOptions:
    """queue: '' = the CronJob's name; image: of the workers; entrypoint: of the CronJob's image."""

    queue: str = ""
    image: str = ""
    module: str = "cronjob_tasks"
    entrypoint: tuple[str, ...] = ()


def take_over(cronjob: object, options: CronJobOptions) -> Takeover:
    """Raises ConfigurationError for what cannot be a CronTask, with the reason."""
    cronjob, name = _head(cronjob)
    spec = _at(cronjob, "spec")
    job = _at(spec, "jobTemplate", "spec")
    pod = _at(job, "template", "spec")
    container = _only_container(pod, name)
    queue = options.queue or name
    notes = [*_odd_fields(job, pod, container), *_moved(spec, container)]
    command = TakenCommand(
        task=name,
        argv=_argv(container, options, notes),
        max_attempts=_number(job, "backoffLimit", _BACKOFF_LIMIT) + 1,
    )
    document = {
        "apiVersion": API_VERSION,
        "kind": "CronTask",
        "metadata": _metadata(cronjob, name),
        "spec": _cron_spec(spec, job, queue, command),
    }
    remarks = tuple(str(note) for note in notes)
    return Takeover(
        source=f"CronJob {name}",
        queue={
            "apiVersion": API_VERSION,
            "kind": "TaskQueue",
            "metadata": _metadata(cronjob, queue),
            "spec": _queue_spec(job, pod, container, options),
        },
        taken=(Taken(document, command, remarks),),
        notes=tuple(notes),
        queue_remarks=(_of_image(container),),
    )


def _of_image(container: Mapping[str, Any]) -> str:
    return (
        f"The image has to hold both Tidework's worker and what {container.get('image')} holds: "
        "see docs/schedules.md, From CronJob."
    )


def _head(found: object) -> tuple[Mapping[str, Any], str]:
    """The CronJob and its name."""
    if not isinstance(found, Mapping) or found.get("kind") != "CronJob":
        raise ConfigurationError(
            "this is not a CronJob: give one document of batch/v1, kind CronJob"
        )
    name = _at(found, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError("the CronJob has no metadata.name: give it one")
    return found, name


def _at(found: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for place, key in enumerate(path):
        found = found.get(key) or {}
        if not isinstance(found, Mapping):
            raise ConfigurationError(f"{'.'.join(path[: place + 1])} has to be a mapping")
    return found


def _metadata(cronjob: Mapping[str, Any], name: str) -> dict[str, Any]:
    namespace = _at(cronjob, "metadata").get("namespace")
    return {"name": name} | ({"namespace": namespace} if namespace else {})


def _number(found: Mapping[str, Any], key: str, default: int) -> int:
    value = found.get(key)
    return value if isinstance(value, int) else default


def _only_container(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    containers = pod.get("containers")
    if not isinstance(containers, list) or len(containers) != 1:
        count = len(containers) if isinstance(containers, list) else 0
        raise ConfigurationError(
            f"CronJob {name} has {count} containers; a task runs one command: "
            "merge them, or keep the CronJob"
        )
    found: Mapping[str, Any] = containers[0]
    return found


def _argv(
    container: Mapping[str, Any], options: CronJobOptions, notes: list[Note]
) -> tuple[str, ...]:
    command = [*(container.get("command") or options.entrypoint), *(container.get("args") or ())]
    if not container.get("command") and not options.entrypoint:
        raise ConfigurationError(
            f"the container names no command, so that its image's own runs: find it with "
            f"`docker image inspect {container.get('image')}` and give it as --entrypoint"
        )
    values = {
        each["name"]: str(each["value"])
        for each in container.get("env") or ()
        if each.get("value") is not None
    }
    unknown: set[str] = set()

    def expanded(found: re.Match[str]) -> str:
        if found.group() == "$$":
            return "$"
        if found[1] not in values:
            unknown.add(found[1])
            return found.group()
        return values[found[1]]

    argv = tuple(_VARIABLE.sub(expanded, str(word)) for word in command)
    notes += [
        Note("args", f"$({name}) is expanded by the kubelet alone; read the variable instead")
        for name in sorted(unknown)
    ]
    return argv


def _cron_spec(
    spec: Mapping[str, Any], job: Mapping[str, Any], queue: str, command: TakenCommand
) -> dict[str, Any]:
    wanted: dict[str, Any] = {"queue": queue, "task": command.task, **_when(spec)}
    wanted["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    if spec.get("startingDeadlineSeconds") is not None:
        wanted["startingDeadlineSeconds"] = spec["startingDeadlineSeconds"]
    if spec.get("suspend"):
        wanted["suspend"] = True
    wanted["maxAttempts"] = command.max_attempts
    if job.get("activeDeadlineSeconds"):
        wanted["timeoutSeconds"] = job["activeDeadlineSeconds"]
    return wanted


def _when(spec: Mapping[str, Any]) -> dict[str, Any]:
    schedule = spec.get("schedule")
    if not isinstance(schedule, str):
        raise ConfigurationError("spec.schedule is missing: give the CronJob one")
    if schedule.startswith(_EVERY):
        return {"every": _interval(schedule.removeprefix(_EVERY).strip())}
    try:
        parse_fields(schedule)
    except ScheduleError as error:
        raise ConfigurationError(
            f"spec.schedule, which Kubernetes takes, is refused here: {reason_of(error)}"
        ) from error
    return {"schedule": schedule, "timeZone": spec.get("timeZone") or "UTC", "dst": "Clock"}


def _interval(text: str) -> str:
    found = _GO_DURATION.fullmatch(text)
    if found is None or not text:
        raise ConfigurationError(
            f"@every {text}: only whole hours, minutes and seconds have a form here, as in 1h30m"
        )
    return "".join(
        f"{int(part)}{unit}" for part, unit in zip(found.groups(), "hms", strict=True) if part
    )


def _queue_spec(
    job: Mapping[str, Any],
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    options: CronJobOptions,
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "app": f"{options.module}:app",
        "hardTimeoutSeconds": job.get("activeDeadlineSeconds") or _DAY_S,
    }
    if options.image:
        spec["image"] = options.image
    for field in ("env", "resources"):
        if container.get(field):
            spec[field] = container[field]
    template = {field: pod[field] for field in _OF_POD if pod.get(field)}
    template |= {
        ours: container[theirs] for theirs, ours in _OF_CONTAINER.items() if container.get(theirs)
    }
    if template:
        spec["template"] = {"spec": template}
    return spec


def _moved(spec: Mapping[str, Any], container: Mapping[str, Any]) -> list[Note]:
    notes = []
    schedule = str(spec.get("schedule", ""))
    if not spec.get("timeZone") and not schedule.startswith(_EVERY):
        text = "none was given, which meant the controller manager's zone: taken as UTC"
        notes.append(Note("timeZone", text))
    if schedule.startswith(_EVERY):
        text = "counted from when the controller saw it; here from midnight UTC on 1970-01-01"
        notes.append(Note("schedule", f"@every {text}, see phase and startTime"))
    if container.get("workingDir"):
        text = f"{container['workingDir']}: make it the WORKDIR of the image"
        notes.append(Note("workingDir", text))
    return notes


def _odd_fields(
    job: Mapping[str, Any], pod: Mapping[str, Any], container: Mapping[str, Any]
) -> list[Note]:
    notes = [
        Note(field, f"{job[field]} pods made a run; here it is one job: fan out from the task")
        for field in ("parallelism", "completions")
        if _number(job, field, 1) > 1
    ]
    if not job.get("activeDeadlineSeconds"):
        text = "none was given; an attempt is killed after a day, see hardTimeoutSeconds"
        notes.append(Note("activeDeadlineSeconds", text))
    left = [
        *(f"template.spec.{each}" for each in pod if each not in _UNDERSTOOD_OF_POD | _SILENT),
        *(
            f"container.{each}"
            for each in container
            if each not in _UNDERSTOOD_OF_CONTAINER | _SILENT | {"workingDir"}
        ),
    ]
    return [*notes, *(Note(each, "is not carried over") for each in left)]
