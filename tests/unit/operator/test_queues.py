"""What is known of a queue, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits
from tidework_operator.cluster import Kind, Object
from tidework_operator.inventory import Inventory
from tidework_operator.queues import KnownQueues

QUEUE = QueueName("shop", "emails")


def taskqueue(version: int, name: str = "emails", **spec: Any) -> Object:
    return {
        "apiVersion": "tidework.dev/v1alpha1",
        "kind": "TaskQueue",
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": str(version)},
        "spec": {"app": "shop.tasks", **spec},
    }


class QueuesOfInventory:
    def __init__(self) -> None:
        self.inventory = Inventory()
        self.moved: list[QueueName] = []
        self.queues = KnownQueues(self.inventory, on_moved=self.moved.append)

    def note(self, found: Object, *, deleted: bool = False) -> None:
        self.inventory.note(Kind.TASK_QUEUE, found, deleted=deleted)


def test_of_an_unknown_queue_nothing_is_made_up() -> None:
    known = QueuesOfInventory()

    assert known.queues.connection(QUEUE) == "default"
    assert known.queues.limits(QUEUE) == QueueLimits()
    assert not known.queues.has_limits(QUEUE)
    assert known.queues.names() == set()


def test_a_taskqueue_says_its_connection_and_bounds() -> None:
    known = QueuesOfInventory()
    known.note(taskqueue(1, redis="cache", leaseSeconds=30))

    assert known.queues.connection(QUEUE) == "cache"
    assert known.queues.limits(QUEUE).lease == timedelta(seconds=30)
    assert known.queues.has_limits(QUEUE)
    assert known.queues.names() == {QUEUE}


def test_both_outlive_the_taskqueue() -> None:
    known = QueuesOfInventory()
    known.note(taskqueue(1, redis="cache", leaseSeconds=30))
    known.queues.connection(QUEUE)

    known.note(taskqueue(2), deleted=True)

    assert known.queues.connection(QUEUE) == "cache"
    assert known.queues.has_limits(QUEUE)
    assert known.queues.names() == set()


def test_a_taskqueue_that_cannot_be_read_changes_nothing() -> None:
    known = QueuesOfInventory()
    known.note(taskqueue(1, redis="cache", leaseSeconds=30))
    known.queues.connection(QUEUE)

    known.note(taskqueue(2, redis="cache", leaseSeconds="many"))

    assert known.queues.limits(QUEUE).lease == timedelta(seconds=30)
    assert known.queues.names() == {QUEUE}


def test_a_move_to_another_connection_is_told_once() -> None:
    known = QueuesOfInventory()
    known.note(taskqueue(1))
    known.queues.connection(QUEUE)

    known.note(taskqueue(2, redis="cache"))
    assert known.queues.connection(QUEUE) == "cache"
    known.note(taskqueue(3, redis="cache", leaseSeconds=30))
    known.queues.limits(QUEUE)

    assert known.moved == [QUEUE]


def test_where_a_queue_was_found_counts_until_its_taskqueue_is_known() -> None:
    known = QueuesOfInventory()
    known.queues.note_connection(QUEUE, "cache")
    assert known.queues.connection(QUEUE) == "cache"
    assert not known.queues.has_limits(QUEUE)

    known.note(taskqueue(1, redis="slow"))
    known.queues.note_connection(QUEUE, "cache")

    assert known.queues.connection(QUEUE) == "slow"


def test_a_name_that_no_queue_can_have_is_left_out() -> None:
    known = QueuesOfInventory()
    known.note(taskqueue(1, name="not.a.label"))

    assert known.queues.names() == set()
