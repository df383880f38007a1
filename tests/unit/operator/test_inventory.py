"""The inventory stays true whatever the watch tells, tells twice, or does not tell."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.fake_cluster import FakeCluster
from tests.support.logs import events
from tidework_operator.cluster import Kind, Object
from tidework_operator.inventory import Inventory, Relist

QUEUE = Kind.TASK_QUEUE


def taskqueue(name: str, version: int = 0, namespace: str = "shop", **spec: Any) -> Object:
    metadata = {"namespace": namespace, "name": name}
    if version:
        metadata["resourceVersion"] = str(version)
    return {"metadata": metadata, "spec": spec}


class RelistedCluster:
    """A cluster, an inventory and its relist; ``watch`` connects them as kopf does."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self.cluster = FakeCluster()
        self.inventory = Inventory()
        self.silences = 0
        self.relist = Relist(self.cluster, self.inventory, namespaces, on_silent=self.count_silence)

    def count_silence(self) -> None:
        self.silences += 1

    async def settle(self) -> None:
        """The hasty rounds of the begin are over."""
        while await self.relist.tick() < timedelta(seconds=60):
            pass

    def watch(self) -> None:
        self.cluster.watchers.append(
            lambda kind, change, found: self.inventory.note(
                kind, found, deleted=change == "DELETED"
            )
        )

    def names(self) -> list[str]:
        return [found["metadata"]["name"] for found in self.inventory.objects(QUEUE)]


async def test_a_list_that_fails_leaves_all_as_it_was_and_is_tried_again_soon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    relisted = RelistedCluster()
    relisted.cluster.put(QUEUE, taskqueue("emails"))
    relisted.cluster.fail("list", Kind.CRON_TASK, times=3)

    waits = [await relisted.relist.tick() for _ in range(3)]

    assert waits == [timedelta(seconds=2)] * 3
    assert not relisted.inventory.complete
    assert relisted.names() == []
    assert "planted by the test" in relisted.inventory.trouble
    assert events(caplog) == ["listing_failed"]

    await relisted.relist.tick()
    assert (relisted.names(), relisted.inventory.trouble) == (["emails"], "")


async def test_an_outage_takes_nothing_out_of_the_inventory() -> None:
    relisted = RelistedCluster()
    relisted.cluster.put(QUEUE, taskqueue("emails"))
    await relisted.relist.tick()

    relisted.cluster.away = True
    await relisted.relist.tick()

    assert (relisted.names(), relisted.inventory.complete) == (["emails"], True)
    assert (relisted.inventory.listings, relisted.inventory.silent) == (1, False)


@pytest.mark.parametrize(
    ("status", "remedy"), [(404, "apply crds/"), (403, "rights of its chart"), (500, "planted")]
)
async def test_what_is_wrong_comes_with_its_remedy(status: int, remedy: str) -> None:
    relisted = RelistedCluster()
    relisted.cluster.fail("list", QUEUE, status=status)

    await relisted.relist.tick()

    assert remedy in relisted.inventory.trouble


async def test_it_is_complete_after_the_first_whole_list() -> None:
    relisted = RelistedCluster()
    relisted.cluster.put(QUEUE, taskqueue("emails"))
    relisted.cluster.put(Kind.CRON_TASK, taskqueue("digest"))

    await relisted.relist.tick()

    assert relisted.inventory.complete
    assert relisted.names() == ["emails"]
    found = relisted.inventory.get(Kind.CRON_TASK, "shop", "digest")
    assert found is not None
    assert (found["apiVersion"], found["kind"]) == ("tidework.dev/v1alpha1", "CronTask")
    assert relisted.inventory.get(Kind.CRON_TASK, "shop", "emails") is None


async def test_an_empty_cluster_makes_it_complete_and_tells_so() -> None:
    relisted = RelistedCluster()
    told: list[bool] = []
    relisted.inventory.subscribe(lambda: told.append(relisted.inventory.complete))

    await relisted.relist.tick()

    assert told == [True]


async def test_a_relist_removes_what_is_gone_and_finds_what_is_new_or_changed() -> None:
    relisted = RelistedCluster()
    for name in ("gone", "kept", "changed"):
        relisted.cluster.put(QUEUE, taskqueue(name, maxReplicas=1))
    await relisted.relist.tick()

    relisted.cluster.remove(QUEUE, "shop", "gone")
    relisted.cluster.put(QUEUE, taskqueue("changed", maxReplicas=2))
    relisted.cluster.put(QUEUE, taskqueue("new"))
    await relisted.relist.tick()

    assert relisted.names() == ["changed", "kept", "new"]
    changed = relisted.inventory.get(QUEUE, "shop", "changed")
    assert changed is not None
    assert changed["spec"] == {"maxReplicas": 2}


async def test_only_the_watched_namespaces_are_listed() -> None:
    relisted = RelistedCluster(("shop", "lab"))
    for namespace in ("shop", "lab", "other"):
        relisted.cluster.put(QUEUE, taskqueue("emails", namespace=namespace))

    await relisted.relist.tick()

    spaces = [found["metadata"]["namespace"] for found in relisted.inventory.objects(QUEUE)]
    assert spaces == ["lab", "shop"]
    assert "list taskqueues " not in relisted.cluster.calls


async def test_what_the_watch_tells_during_a_list_is_newer_than_the_list() -> None:
    inventory = Inventory()
    inventory.note(QUEUE, taskqueue("changed", 5))
    inventory.note(QUEUE, taskqueue("deleted", 6))
    inventory.begin_relist()
    listed = [taskqueue("changed", 5), taskqueue("deleted", 6)]

    inventory.note(QUEUE, taskqueue("changed", 8))
    inventory.note(QUEUE, taskqueue("created", 9))
    inventory.note(QUEUE, taskqueue("deleted", 10), deleted=True)
    inventory.finish_relist({QUEUE: listed, Kind.CRON_TASK: []})

    versions = {
        found["metadata"]["name"]: found["metadata"]["resourceVersion"]
        for found in inventory.objects(QUEUE)
    }
    assert versions == {"changed": "8", "created": "9"}


def test_a_watch_that_lags_behind_a_relist_takes_nothing_back() -> None:
    inventory = Inventory()
    inventory.begin_relist()
    inventory.finish_relist({QUEUE: [taskqueue("emails", 9)], Kind.CRON_TASK: []})

    inventory.note(QUEUE, taskqueue("emails", 7))
    inventory.note(QUEUE, taskqueue("emails", 8), deleted=True)

    assert inventory.objects(QUEUE)[0]["metadata"]["resourceVersion"] == "9"


def test_the_same_version_again_is_no_change() -> None:
    inventory = Inventory()
    inventory.note(QUEUE, taskqueue("emails", 5))
    changes = inventory.changes

    inventory.note(QUEUE, taskqueue("emails", 5))
    inventory.note(QUEUE, taskqueue("unknown", 6), deleted=True)

    assert inventory.changes == changes


def test_each_change_is_told() -> None:
    inventory = Inventory()
    told: list[int] = []
    inventory.subscribe(lambda: told.append(inventory.changes))

    inventory.note(QUEUE, taskqueue("emails", 5))
    inventory.note(QUEUE, taskqueue("emails", 6))
    inventory.note(QUEUE, taskqueue("emails", 7), deleted=True)

    assert told == [1, 2, 3]
    assert inventory.objects(QUEUE) == []


def test_managed_fields_are_left_away_and_the_rest_is_not_touched() -> None:
    inventory = Inventory()
    told = taskqueue("emails", 5, app="shop.tasks")
    told["metadata"]["managedFields"] = [{"manager": "kubectl"}]

    inventory.note(QUEUE, told)

    held = inventory.objects(QUEUE)[0]
    assert "managedFields" not in held["metadata"]
    assert held["spec"] == {"app": "shop.tasks"}
    assert "managedFields" in told["metadata"]


async def test_lists_follow_soon_upon_each_other_while_the_watch_begins() -> None:
    relisted = RelistedCluster()

    assert [(await relisted.relist.tick()).total_seconds() for _ in range(5)] == [5, 5, 5, 60, 60]
    relisted.relist.hasten()
    assert [(await relisted.relist.tick()).total_seconds() for _ in range(4)] == [5, 5, 5, 60]


async def test_what_goes_while_the_watch_begins_is_found_and_proves_nothing() -> None:
    relisted = RelistedCluster()
    for name in ("a", "b"):
        relisted.cluster.put(QUEUE, taskqueue(name))
    await relisted.relist.tick()

    relisted.cluster.remove(QUEUE, "shop", "a")
    await relisted.settle()
    await relisted.relist.tick()

    assert relisted.names() == ["b"]
    assert relisted.silences == 0


async def test_a_watch_that_works_is_not_called_silent() -> None:
    relisted = RelistedCluster()
    await relisted.settle()
    relisted.watch()
    for version in range(3):
        relisted.cluster.put(QUEUE, taskqueue("emails", maxReplicas=version))
        await relisted.relist.tick()

    assert relisted.silences == 0


async def test_a_watch_that_misses_changes_is_noticed_by_the_next_relist_but_one() -> None:
    relisted = RelistedCluster()
    await relisted.settle()
    relisted.cluster.put(QUEUE, taskqueue("emails"))

    await relisted.relist.tick()
    assert relisted.silences == 0
    await relisted.relist.tick()

    assert relisted.silences == 1
    await relisted.settle()
    assert relisted.silences == 1


async def test_a_watch_that_tells_late_is_not_called_silent() -> None:
    relisted = RelistedCluster()
    await relisted.settle()
    relisted.cluster.put(QUEUE, taskqueue("emails"))
    await relisted.relist.tick()

    relisted.inventory.note(QUEUE, relisted.cluster.objects(QUEUE)[0])
    await relisted.relist.tick()

    assert relisted.silences == 0


async def test_a_watch_that_begins_anew_by_itself_is_not_called_silent() -> None:
    relisted = RelistedCluster()
    await relisted.settle()
    relisted.cluster.put(QUEUE, taskqueue("emails"))
    await relisted.relist.tick()

    relisted.relist.hasten()
    await relisted.settle()

    assert relisted.silences == 0
