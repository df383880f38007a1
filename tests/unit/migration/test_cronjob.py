"""A CronJob becomes a CronTask that fires when it did."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidework.errors import ConfigurationError
from tidework.manifests import CronTask, TaskQueue, parse_document, read_manifests
from tidework.migration.cronjob import CronJobOptions, take_over
from tidework.migration.takeover import Takeover, write_files
from tidework.model.fire import ConcurrencyPolicy
from tidework.model.schedules.cron import DstPolicy, parse_cron

DATA = Path(__file__).parents[2] / "data/migration"


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DATA / f"cronjob-{name}.yaml").read_text())
    return found


def changed(**spec: Any) -> dict[str, Any]:
    """The documentation's example with other fields of its spec; ``container`` and ``pod`` and
    ``job`` change those."""
    found = deepcopy(example("hello"))
    job = found["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    pod["containers"][0].update(spec.pop("container", {}))
    pod.update(spec.pop("pod", {}))
    job.update(spec.pop("job", {}))
    found["spec"].update(spec)
    return found


def taken(cronjob: object, **options: Any) -> Takeover:
    return take_over(cronjob, CronJobOptions(**options))


def notes(found: Takeover) -> list[str]:
    return [str(note) for note in found.notes]


def parsed(found: Takeover) -> tuple[TaskQueue, CronTask]:
    queue, crontask = parse_document(found.queue), parse_document(found.taken[0].document)
    assert isinstance(queue, TaskQueue)
    assert isinstance(crontask, CronTask)
    return queue, crontask


def test_a_backup() -> None:
    found = taken(example("backup"), image="shop-backup:8", queue="backups")
    queue, crontask = parsed(found)
    spec = crontask.spec
    assert (crontask.metadata.name, crontask.metadata.namespace) == ("database-backup", "shop")
    assert crontask.to_schedule() == parse_cron(
        "30 2 * * *", time_zone="Europe/Berlin", dst=DstPolicy.CLOCK
    )
    assert spec.concurrency_policy is ConcurrencyPolicy.FORBID
    assert (spec.starting_deadline_seconds, spec.max_attempts, spec.timeout_seconds) == (
        3600,
        3,
        1800,
    )
    assert spec.queue == queue.metadata.name == "backups"
    assert queue.spec.image == "shop-backup:8"
    assert queue.spec.hard_timeout_seconds == 1800
    assert [each.name for each in queue.spec.env] == ["DATABASE", "PGPASSWORD"]
    assert queue.spec.template.spec.volume_mounts[0]["mountPath"] == "/backups"
    assert found.taken[0].command.argv == (
        "/bin/sh",
        "-c",
        "echo dumped shop for $HOME > $FOLDER/dump.txt",
    )
    assert notes(found) == ["template.spec.serviceAccountName: is not carried over"]


def test_the_example_of_kubernetes() -> None:
    found = taken(example("hello"))
    queue, crontask = parsed(found)
    assert crontask.spec.dst is DstPolicy.CLOCK
    assert crontask.spec.max_attempts == 7  # Kubernetes' backoffLimit, and the first attempt
    assert queue.spec.hard_timeout_seconds == 86_400
    assert [note.partition(":")[0] for note in notes(found)] == [
        "activeDeadlineSeconds",
        "timeZone",
    ]


@pytest.mark.parametrize("name", ["backup", "hello"])
def test_the_files_are_taken(name: str, tmp_path: Path) -> None:
    write_files(taken(example(name)), tmp_path)
    manifests = read_manifests([tmp_path])
    assert (len(manifests.queues), len(manifests.crontasks)) == (1, 1)
    assert "docs/schedules.md, From CronJob" in (tmp_path / "tidework.yaml").read_text()


def test_a_suspended_one_stays_so() -> None:
    assert parsed(taken(changed(suspend=True)))[1].spec.suspend


@pytest.mark.parametrize(
    ("schedule", "every"),
    [("@every 1h30m", "1h30m"), ("@every 90s", "90s"), ("@every 0h5m", "0h5m")],
)
def test_intervals(schedule: str, every: str) -> None:
    found = taken(changed(schedule=schedule))
    assert parsed(found)[1].spec.every == every
    assert any("phase and startTime" in note for note in notes(found))


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"job": {"parallelism": 3}}, "parallelism: 3 pods made a run"),
        ({"job": {"completions": 3}}, "completions: 3 pods made a run"),
        ({"container": {"workingDir": "/srv"}}, "workingDir: /srv: make it the WORKDIR"),
        ({"container": {"lifecycle": {}}}, "container.lifecycle: is not carried over"),
        ({"pod": {"hostNetwork": True}}, "template.spec.hostNetwork: is not carried over"),
        ({"container": {"args": ["$(POD)"]}}, "args: $(POD) is expanded by the kubelet"),
    ],
)
def test_what_is_not_carried_over_is_told(fields: dict[str, Any], note: str) -> None:
    found = taken(changed(**fields))
    assert any(each.startswith(note) for each in notes(found))
    assert any(each.startswith(note) for each in found.taken[0].remarks)
    parsed(found)


@pytest.mark.parametrize(
    ("cronjob", "reason"),
    [
        (None, "this is not a CronJob"),
        ([1], "this is not a CronJob"),
        ({"kind": "Job"}, "this is not a CronJob"),
        ({"kind": "CronJob"}, "no metadata.name"),
        ({"kind": "CronJob", "metadata": 5}, "metadata has to be a mapping"),
        ({"kind": "CronJob", "metadata": {"name": "a"}}, "has 0 containers"),
        (changed(pod={"containers": [{}, {}]}), "has 2 containers"),
        (changed(container={"command": None}), "give it as --entrypoint"),
        (changed(schedule=None), "spec.schedule is missing"),
        (changed(schedule="0 0 30 2 *"), "refused here: '0 0 30 2 *' at position 4: no such date"),
        (changed(schedule="@every 100ms"), "only whole hours, minutes and seconds"),
        (changed(schedule="H * * * *"), "refused here"),
    ],
)
def test_refused(cronjob: object, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        taken(cronjob)
    assert reason in str(caught.value)


def test_an_image_that_names_its_own_command() -> None:
    cronjob = changed(container={"command": None, "args": ["--all"]})
    found = taken(cronjob, entrypoint=("/usr/bin/tool", "run"))
    assert found.taken[0].command.argv == ("/usr/bin/tool", "run", "--all")
