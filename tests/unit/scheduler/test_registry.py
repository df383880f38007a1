"""The set of CronTasks, the specs in it, and where they come from."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.scheduler.rig import QUEUE, START, at, make_spec
from tidework.errors import ConfigurationError
from tidework.manifests import CronTask, parse_document
from tidework.model.fire import ConcurrencyPolicy
from tidework.model.identity import QueueName, is_job_id
from tidework.model.schedules.schedule import Every
from tidework.scheduler.documents import spec_of
from tidework.scheduler.due import CatchUp, CatchUpMode, FireRules
from tidework.scheduler.registry import CronRegistry
from tidework.scheduler.spec import CronSpec, manual_job


def document(**spec: object) -> CronTask:
    found = parse_document(
        {
            "apiVersion": "tidework.dev/v1alpha1",
            "kind": "CronTask",
            "metadata": {
                "name": "digest",
                "namespace": "shop",
                "annotations": {"tidework.dev/run-now": "n1"},
            },
            "spec": {"queue": "emails", "task": "send_digest"} | spec,
        }
    )
    assert isinstance(found, CronTask)
    return found


def test_a_replacement_is_seen_by_version_and_listeners() -> None:
    registry = CronRegistry([make_spec()])
    heard: list[int] = []
    registry.subscribe(lambda: heard.append(registry.version))
    before = registry.specs

    registry.replace([make_spec(uid="other")], [QueueName("shop", "idle")])

    assert heard == [2]
    assert set(registry.specs) == {"other"}
    assert set(before) == {"digest"}
    assert registry.queues == {QUEUE, QueueName("shop", "idle")}
    assert registry.by_queue() == {QUEUE: {"other": registry.specs["other"]}}


def test_one_uid_twice_is_refused_and_nothing_replaced() -> None:
    registry = CronRegistry([make_spec()])

    with pytest.raises(ConfigurationError, match=r"shop/a and shop/b have the same uid 'u'"):
        registry.replace([make_spec(uid="u", name="a"), make_spec(uid="u", name="b")])

    assert set(registry.specs) == {"digest"}


def test_finding_by_uid_name_or_full_name() -> None:
    one = make_spec(uid="u1", name="digest")
    two = make_spec(uid="u2", name="digest", queue=QueueName("bank", "emails"))
    registry = CronRegistry([one, two])

    assert registry.find("u1") is one
    assert registry.find("bank/digest") is two
    assert registry.find("digest") is None
    assert registry.find("nothing") is None


@pytest.mark.parametrize(
    "given, reason",
    [
        ({"uid": "has space"}, "uid: 'has space' has to be"),
        ({"uid": "x" * 120}, "has to be at most 110 characters"),
        ({"params": {"at": START}}, "params: not JSON data"),
        ({"params": {"text": "x" * 300_000}}, "the limit is 262144"),
    ],
)
def test_a_crontask_whose_jobs_could_not_be_enqueued_is_refused(
    given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refused:
        make_spec(name="digest", **given)

    assert str(refused.value).startswith("CronTask shop/digest: ")


def test_the_fingerprint_changes_with_what_stops_and_resumes() -> None:
    prints = {
        make_spec(**given).fingerprint
        for given in ({}, {"suspend": True}, {"max_runs": 3}, {"end": at("11:00:00")})
    }

    assert len(prints) == 4
    assert make_spec(params={"x": 1}, run_now="n").fingerprint == make_spec().fingerprint


def test_what_a_store_adds_makes_no_difference() -> None:
    assert make_spec(document=b"{}", last_scheduled=START, created=START) == make_spec(
        document=b'{"x":1}', created=at("09:00:00")
    )


def test_any_nonce_makes_an_id() -> None:
    spec = make_spec()

    ids = {manual_job(spec, nonce, START).id for nonce in ("1", "a b/c", "é" * 1000)}

    assert len(ids) == 3
    assert all(is_job_id(found) for found in ids)


def test_a_document_becomes_a_spec() -> None:
    crontask = document(
        every="90s",
        params={"to": None},
        suspend=True,
        concurrencyPolicy="Forbid",
        startingDeadlineSeconds=30,
        catchUp="All",
        catchUpLimit=7,
        catchUpWindowSeconds=3600,
        startTime="2026-01-05T09:00:00Z",
        endTime="2026-01-05T12:00:00Z",
        maxRuns=3,
        priority=1,
        maxAttempts=2,
        timeoutSeconds=45,
    )

    spec = spec_of(crontask, START, last_scheduled=at("09:30:00"))

    assert spec == CronSpec(
        uid=crontask.metadata.uid,
        name="digest",
        queue=QUEUE,
        task="send_digest",
        rules=FireRules(
            Every(timedelta(seconds=90), at("09:00:00")),
            deadline=timedelta(seconds=30),
            catch_up=CatchUp(CatchUpMode.ALL, 7, timedelta(hours=1)),
            start=at("09:00:00"),
            end=at("12:00:00"),
        ),
        created=START,
        params={"to": None},
        suspend=True,
        policy=ConcurrencyPolicy.FORBID,
        max_runs=3,
        priority=1,
        max_attempts=2,
        timeout=timedelta(seconds=45),
        run_now="n1",
    )
    assert (spec.created, spec.last_scheduled) == (START, at("09:30:00"))


def test_the_mirrored_document_gives_the_same_spec_again() -> None:
    spec = spec_of(
        document(schedule="0 9 * * *", timeZone="Asia/Shanghai", params={"a": None}), START
    )

    again = parse_document(json.loads(spec.document))

    assert isinstance(again, CronTask)
    assert spec_of(again, START) == spec
    assert spec.params == {"a": None}
