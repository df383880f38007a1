"""Events: told once, counted after that, and never a reason to fail."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fake_cluster import FakeCluster
from tests.support.logs import lines
from tidework.clock import ManualClock
from tidework_operator.cluster import Kind, Object
from tidework_operator.events import QUIET, Events

ABOUT: Object = {
    "apiVersion": "tidework.dev/v1alpha1",
    "kind": "TaskQueue",
    "metadata": {"namespace": "shop", "name": "emails", "uid": "u-1", "resourceVersion": "7"},
}


class EventRecord:
    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, 10, tzinfo=UTC))
        self.cluster = FakeCluster(self.clock)
        self.events = self.another("operator-a")

    def another(self, instance: str) -> Events:
        return Events(self.cluster, self.clock, instance=instance)

    def found(self) -> list[dict[str, Any]]:
        return self.cluster.objects(Kind.EVENT)


async def test_an_api_server_that_is_away_is_logged_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = EventRecord()
    record.cluster.away = True

    await record.events.post(ABOUT, "ScaledUp", "0 -> 3")

    assert record.events.failures == 1
    (line,) = lines(caplog, "event_lost")
    assert "ScaledUp" in line["message"]
    assert "connection refused" in line["message"]


async def test_an_outage_is_not_hammered_with_what_was_lost() -> None:
    record = EventRecord()
    record.cluster.away = True
    for _ in range(20):
        await record.events.post(ABOUT, "ScaledUp", "0 -> 3")

    assert len(record.cluster.calls) == 1


async def test_an_event_says_who_what_and_about_whom() -> None:
    record = EventRecord()

    await record.events.post(ABOUT, "ScaledUp", "0 -> 3", warning=True)

    (event,) = record.found()
    assert event["metadata"]["namespace"] == "shop"
    assert event["metadata"]["name"].startswith("emails.")
    assert event["eventTime"] == "2026-01-05T10:00:00.000000Z"
    assert event["regarding"] == {
        "apiVersion": "tidework.dev/v1alpha1",
        "kind": "TaskQueue",
        "namespace": "shop",
        "name": "emails",
        "uid": "u-1",
    }
    said = (event["reason"], event["action"], event["note"], event["type"])
    assert said == ("ScaledUp", "ScaledUp", "0 -> 3", "Warning")
    who = (event["reportingController"], event["reportingInstance"])
    assert who == ("tidework-operator", "operator-a")
    assert "series" not in event


async def test_the_same_is_told_once_and_what_repeats_is_counted_later() -> None:
    record = EventRecord()
    for _ in range(5):
        await record.events.post(ABOUT, "ScaledUp", "0 -> 3")
    assert len(record.cluster.calls) == 1

    record.clock.advance(QUIET)
    await record.events.post(ABOUT, "ScaledUp", "0 -> 3")

    (event,) = record.found()
    assert event["series"] == {"count": 6, "lastObservedTime": "2026-01-05T10:10:00.000000Z"}


async def test_another_reason_message_type_or_object_is_another_event() -> None:
    record = EventRecord()
    other = {**ABOUT, "metadata": {**ABOUT["metadata"], "uid": "u-2"}}

    await record.events.post(ABOUT, "ScaledUp", "0 -> 3")
    await record.events.post(ABOUT, "ScaledDown", "0 -> 3")
    await record.events.post(ABOUT, "ScaledUp", "0 -> 4")
    await record.events.post(ABOUT, "ScaledUp", "0 -> 3", warning=True)
    await record.events.post(other, "ScaledUp", "0 -> 3")

    assert len(record.found()) == 5


async def test_the_next_leader_goes_on_with_the_series() -> None:
    record = EventRecord()
    await record.events.post(ABOUT, "ScaledUp", "0 -> 3")
    record.clock.advance(timedelta(seconds=30))

    await record.another("operator-b").post(ABOUT, "ScaledUp", "0 -> 3")

    (event,) = record.found()
    assert event["reportingInstance"] == "operator-a"
    assert event["series"]["count"] == 2


async def test_an_event_that_the_api_server_has_forgotten_is_told_anew() -> None:
    record = EventRecord()
    await record.events.post(ABOUT, "ScaledUp", "0 -> 3")
    name = record.found()[0]["metadata"]["name"]
    record.cluster.remove(Kind.EVENT, "shop", name)

    record.clock.advance(timedelta(hours=2))
    await record.events.post(ABOUT, "ScaledUp", "0 -> 3")

    assert [event["metadata"]["name"] for event in record.found()] == [name]


async def test_a_forbidden_event_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    record = EventRecord()
    record.cluster.fail("create", Kind.EVENT, status=403)

    with caplog.at_level(logging.WARNING):
        await record.events.post(ABOUT, "ScaledUp", "0 -> 3")

    (line,) = lines(caplog, "event_lost")
    assert "403" in line["message"]


async def test_a_long_message_is_cut_to_the_bytes_that_the_api_server_takes() -> None:
    record = EventRecord()

    await record.events.post(ABOUT, "ScaledUp", "é" * 1000)

    note = record.found()[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("...")


async def test_what_is_remembered_is_bounded() -> None:
    record = EventRecord()
    for number in range(2500):
        await record.events.post(ABOUT, "ScaledUp", f"0 -> {number}")

    assert len(record.events._told) <= 2001
