"""kopf inside our loop, against a server on the loopback: it feeds, it dies, it harms nobody."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.support.api_server import ApiServer, refusal
from tests.support.fake_cluster import FakeCluster
from tests.support.logs import lines
from tests.support.waiting import until
from tidework.loop import Loop
from tidework_operator.cluster import Kind, Object
from tidework_operator.handlers import Watch
from tidework_operator.inventory import Inventory, Relist
from tidework_operator.patience import Patience

QUEUE = Kind.TASK_QUEUE


def taskqueue(name: str, namespace: str = "shop", **spec: Any) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


class WatchedServer:
    """An API server, an inventory that was listed once, and the watch on both."""

    def __init__(self, server: ApiServer, namespaces: tuple[str, ...] = ()) -> None:
        self.server = server
        self.cluster = server.cluster
        self.inventory = Inventory()
        self.signals_taken = 0
        self.relist = Relist(server.cluster, self.inventory, namespaces)
        self.list_again = asyncio.Event()
        self.watch = Watch(
            self.inventory,
            self.access,
            namespaces,
            take_signals=self.count_signals,
            on_end=self.list_again.set,
            patience=Patience(watch_pause=timedelta(0), watch_resends=(0.0,)),
        )

    async def access(self) -> dict[str, Any]:
        return {"server": self.server.url, "token": "secret-token"}

    def count_signals(self) -> None:
        self.signals_taken += 1

    def names(self) -> list[str]:
        return [found["metadata"]["name"] for found in self.inventory.objects(QUEUE)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The watch as a task of its own, from its first watch on."""
        loop = Loop("watch", self.watch.tick)
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run())
            lists = group.create_task(self._list_when_asked())
            try:
                await until(lambda: self.server.watching == 2)
                yield
            finally:
                lists.cancel()
                loop.stop()
                self.watch.restart()

    async def _list_when_asked(self) -> None:
        while await self.list_again.wait():
            self.list_again.clear()
            await self.relist.tick()


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(FakeCluster()) as server:
        yield server


@pytest.fixture
async def watched(server: ApiServer) -> WatchedServer:
    watched = WatchedServer(server)
    await watched.relist.tick()
    return watched


def client_tasks() -> set[str]:
    """Every task that is none of the test's server."""
    names = {task: getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()}
    return {str(task) for task, name in names.items() if not name.startswith("RequestHandler.")}


async def test_nothing_of_ours_ends_with_kopf(watched: WatchedServer) -> None:
    async with watched.running():
        younger = asyncio.create_task(asyncio.Event().wait())
        spawned = watched.watch.restarts

        watched.server.end_watches({"kind": "Status", "code": 500, "message": "etcd is gone"})
        await until(lambda: watched.watch.restarts > spawned)
        await until(lambda: watched.server.watching == 2)

        assert not younger.done()
        younger.cancel()


async def test_it_is_started_again_and_tells_what_came_meanwhile(
    watched: WatchedServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched.running():
        watched.server.end_watches({"kind": "Status", "code": 500, "message": "etcd is gone"})
        watched.cluster.put(QUEUE, taskqueue("emails"))

        await until(lambda: watched.names() == ["emails"])
        await until(lambda: watched.server.watching == 2)
        watched.cluster.put(QUEUE, taskqueue("reports"))
        await until(lambda: watched.names() == ["emails", "reports"])

    assert any("etcd is gone" in line["message"] for line in lines(caplog, "watch_ended"))


async def test_its_end_leaves_no_task_behind(watched: WatchedServer) -> None:
    before = client_tasks()

    async with watched.running():
        assert len(client_tasks()) > len(before)

    assert len(client_tasks()) == len(before), client_tasks()


async def test_cancelling_it_leaves_no_task_behind(watched: WatchedServer) -> None:
    before = client_tasks()
    running = asyncio.create_task(watched.watch.tick())
    await until(lambda: watched.server.watching == 2)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert len(client_tasks()) == len(before), client_tasks()


async def test_the_signals_stay_ours(watched: WatchedServer) -> None:
    got: list[int] = []
    loop = asyncio.get_running_loop()
    watched.watch._take_signals = lambda: loop.add_signal_handler(signal.SIGTERM, got.append, 15)

    try:
        async with watched.running():
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: got)
            watched.cluster.put(QUEUE, taskqueue("emails"))
            await until(lambda: watched.names() == ["emails"])
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGINT)

    assert got == [15]


async def test_an_api_server_that_refuses_it_is_asked_again(watched: WatchedServer) -> None:
    async def refuse(_: Any) -> Any:
        return refusal(403, "forbidden")

    watched.server.respond = refuse
    loop = Loop("watch", watched.watch.tick)
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run())
        for restarts in (1, 2):
            await until(lambda restarts=restarts: watched.watch.restarts == restarts)  # type: ignore[misc]
            await watched.relist.tick()
        watched.server.respond = None
        await until(lambda: watched.server.watching == 2)
        loop.stop()
        watched.watch.restart()


async def test_pauses_grow_and_stay_bounded(
    watched: WatchedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> str:
        return "a failure"

    monkeypatch.setattr(watched.watch, "_live", fail)
    watched.watch._pause = timedelta(seconds=1)

    pauses = []
    for _ in range(9):
        await watched.relist.tick()
        pauses.append((await watched.watch.tick()).total_seconds())

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_while_the_api_server_is_away_it_is_not_started_again(
    watched: WatchedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives: list[str] = []

    async def fail() -> str:
        lives.append("a life")
        return "a failure"

    monkeypatch.setattr(watched.watch, "_live", fail)
    await watched.watch.tick()
    watched.cluster.away = True
    for _ in range(5):
        await watched.relist.tick()
        await watched.watch.tick()
    assert len(lives) == 1

    watched.cluster.away = False
    await watched.relist.tick()
    await watched.watch.tick()

    assert len(lives) == 2


async def test_it_waits_for_the_first_list(server: ApiServer) -> None:
    watch = WatchedServer(server).watch

    assert await watch.tick() > timedelta(0)

    assert server.asked == []


async def test_what_comes_changes_and_goes_is_told(watched: WatchedServer) -> None:
    async with watched.running():
        watched.cluster.put(QUEUE, taskqueue("emails", maxReplicas=1))
        watched.cluster.put(Kind.CRON_TASK, taskqueue("digest"))
        await until(lambda: watched.names() == ["emails"])
        await until(lambda: watched.inventory.get(Kind.CRON_TASK, "shop", "digest"))

        watched.cluster.put(QUEUE, taskqueue("emails", maxReplicas=2))
        await until(lambda: watched.inventory.objects(QUEUE)[0]["spec"] == {"maxReplicas": 2})

        watched.cluster.remove(QUEUE, "shop", "emails")
        await until(lambda: watched.names() == [])


async def test_it_writes_nothing_and_lists_no_other_kind(watched: WatchedServer) -> None:
    watched.cluster.put(QUEUE, taskqueue("emails"))
    async with watched.running():
        watched.cluster.put(QUEUE, taskqueue("emails", maxReplicas=1))
        await until(lambda: watched.inventory.objects(QUEUE)[0]["spec"] == {"maxReplicas": 1})

    assert {asked.method for asked in watched.server.asked} == {"GET"}
    paths = {asked.path for asked in watched.server.asked if "watch" in asked.query}
    assert paths == {
        "/apis/tidework.dev/v1alpha1/taskqueues",
        "/apis/tidework.dev/v1alpha1/crontasks",
    }
    listed = {
        asked.path.rpartition("/")[2] for asked in watched.server.asked if asked.path not in paths
    }
    assert listed <= {"api", "apis", "v1", "v1alpha1"}


async def test_watches_are_bounded_in_time(watched: WatchedServer) -> None:
    async with watched.running():
        pass

    (query, *_) = [asked.query for asked in watched.server.asked if "watch" in asked.query]
    assert query["timeoutSeconds"] == "300"
    assert query["allowWatchBookmarks"] == "true"


async def test_only_the_watched_namespaces_are_watched(server: ApiServer) -> None:
    watched = WatchedServer(server, ("shop",))
    await watched.relist.tick()
    async with watched.running():
        watched.cluster.put(QUEUE, taskqueue("emails", namespace="other"))
        watched.cluster.put(QUEUE, taskqueue("emails", namespace="shop"))
        await until(watched.names)

    assert len(watched.inventory.objects(QUEUE)) == 1
    paths = {asked.path for asked in server.asked if "watch" in asked.query}
    assert all("/namespaces/shop/" in path for path in paths)


async def test_a_silent_watch_is_begun_anew_by_the_relist(watched: WatchedServer) -> None:
    watched.relist._on_silent = watched.watch.restart
    watched.relist._hasty = 0
    async with watched.running():
        watched.server.deaf = True
        watched.cluster.put(QUEUE, taskqueue("emails"))
        await watched.relist.tick()
        assert watched.names() == ["emails"]
        taken = watched.signals_taken

        await watched.relist.tick()
        await until(lambda: watched.signals_taken > taken and watched.server.watching == 2)
        watched.server.deaf = False
        watched.cluster.put(QUEUE, taskqueue("reports"))
        await until(lambda: watched.names() == ["emails", "reports"])
