"""A Cluster of three plain server processes, without replicas."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis.crc import key_slot

from tests.support.servers import AWAY, ValkeyServer, free_port
from tests.support.waiting import wait_until
from tidework.model.identity import QueueName

SLOTS = 16384


class ClusterNode(ValkeyServer):
    """One server of a Cluster; it goes on while others are away."""

    def __init__(self, binary: Path | None = None) -> None:
        self.bus_port = free_port()
        options = ["--cluster-enabled", "yes", "--cluster-port", str(self.bus_port)]
        options += ["--cluster-node-timeout", "1500", "--cluster-require-full-coverage", "no"]
        super().__init__(binary, *options)

    def say(self, *words: str | int) -> Any:
        """One command to this server; the reply is raw if the command's words are apart."""
        with self.client() as client:
            return client.execute_command(*words)

    def id(self) -> str:
        """By which the others know it."""
        found: bytes = self.say("CLUSTER", "MYID")
        return found.decode()

    def is_whole(self) -> bool:
        """Does it know the two others, and a server for every slot?"""
        found = self.say("CLUSTER INFO")
        wanted = {"cluster_state": "ok", "cluster_known_nodes": "3"}
        wanted["cluster_slots_ok"] = str(SLOTS)
        return bool(wanted.items() <= found.items())


class ThreeNodes:
    """Three servers, each with a third of the slots. A context manager."""

    def __init__(self, binary: Path | None = None) -> None:
        self.nodes = tuple(ClusterNode(binary) for _ in range(3))
        self._owners = [self.nodes[slot * 3 // SLOTS] for slot in range(SLOTS)]
        self._stack = ExitStack()

    def url(self, *known: ClusterNode) -> str:
        """Of the Cluster by the nodes ``known``, or by all."""
        places = ",".join(f"127.0.0.1:{node.port}" for node in known or self.nodes)
        return f"redis+cluster://{places}"

    def owner(self, queue: QueueName) -> ClusterNode:
        """The server that has a queue's keys."""
        return self._owners[slot_of(queue)]

    def queue_on(self, node: ClusterNode, namespace: str) -> QueueName:
        """A queue whose keys ``node`` has."""
        names = (QueueName(namespace, f"q{number}") for number in range(1000))
        return next(queue for queue in names if self.owner(queue) is node)

    def announce_move(self, queue: QueueName, target: ClusterNode) -> None:
        """Source and target begin to move the queue's slot; its keys stay where they are."""
        slot, source = slot_of(queue), self.owner(queue)
        target.say("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id())
        source.say("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id())

    def move_keys(self, queue: QueueName, target: ClusterNode) -> None:
        """Its keys go to ``target``."""
        source = self.owner(queue)
        while keys := source.say("CLUSTER", "GETKEYSINSLOT", slot_of(queue), 100):
            to = ("127.0.0.1", target.port, "", 0, 5000)
            source.say("MIGRATE", *to, "KEYS", *keys)

    def conclude_move(self, queue: QueueName, target: ClusterNode) -> None:
        """All servers are told who has the slot now."""
        source = self.owner(queue)
        others = [node for node in self.nodes if node not in (source, target)]
        for node in (target, source, *others):
            node.say("CLUSTER", "SETSLOT", slot_of(queue), "NODE", target.id())
        self._owners[slot_of(queue)] = target

    def wait_until_whole(self) -> None:
        """Wait until every server knows the others and who has which slot."""
        for node in self.nodes:
            wait_until(node.is_whole, "the Cluster is complete", errors=AWAY)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node)
            for number, node in enumerate(self.nodes):
                node.say("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
                slots = [slot for slot, owner in enumerate(self._owners) if owner is node]
                node.say("CLUSTER", "ADDSLOTSRANGE", slots[0], slots[-1])
            first, *others = self.nodes
            for node in others:
                first.say("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus_port)
            self.wait_until_whole()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


def slot_of(queue: QueueName) -> int:
    """Of all keys of a queue."""
    return key_slot(f"{{{queue}}}".encode())
