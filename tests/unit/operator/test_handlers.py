"""kopf inside our loop, against a server on the loopback: it feeds, it dies, it harms nobody."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.support.api_server import ApiServer, refusal
from tests.support.fake_cluster import FakeCluster
from tests.support.logs import lines
from tidework.loop import Loop
from tidework_operator.cluster import Kind, Object
from tidework_operator.handlers import Watch
from tidework_operator.inventory import Inventory, Relist

QUEUE = Kind.TASK_QUEUE


def taskqueue(name: str, namespace: str = "shop", **spec: Any) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


class Bench:
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
async def bench(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr("tidework_operator.handlers.watch.FIRST_PAUSE", timedelta(0))
    monkeypatch.setattr("tidework_operator.handlers.watch.RETRY_AFTER_S", (0.0,))
    bench = Bench(server)
    await bench.relist.tick()
    return bench


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def client_tasks() -> set[str]:
    """Every task that is none of the test's server."""
    names = {task: getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()}
    return {str(task) for task, name in names.items() if not name.startswith("RequestHandler.")}


async def test_nothing_of_ours_ends_with_kopf(bench: Bench) -> None:
    async with bench.running():
        younger = asyncio.create_task(asyncio.Event().wait())
        spawned = bench.watch.restarts

        bench.server.end_watches({"kind": "Status", "code": 500, "message": "etcd is gone"})
        await until(lambda: bench.watch.restarts > spawned)
        await until(lambda: bench.server.watching == 2)

        assert not younger.done()
        younger.cancel()


async def test_it_is_started_again_and_tells_what_came_meanwhile(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench.running():
        bench.server.end_watches({"kind": "Status", "code": 500, "message": "etcd is gone"})
        bench.cluster.put(QUEUE, taskqueue("emails"))

        await until(lambda: bench.names() == ["emails"])
        await until(lambda: bench.server.watching == 2)
        bench.cluster.put(QUEUE, taskqueue("reports"))
        await until(lambda: bench.names() == ["emails", "reports"])

    assert any("etcd is gone" in line["message"] for line in lines(caplog, "watch_ended"))


async def test_its_end_leaves_no_task_behind(bench: Bench) -> None:
    before = client_tasks()

    async with bench.running():
        assert len(client_tasks()) > len(before)

    assert len(client_tasks()) == len(before), client_tasks()


async def test_cancelling_it_leaves_no_task_behind(bench: Bench) -> None:
    before = client_tasks()
    running = asyncio.create_task(bench.watch.tick())
    await until(lambda: bench.server.watching == 2)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert len(client_tasks()) == len(before), client_tasks()


async def test_the_signals_stay_ours(bench: Bench) -> None:
    got: list[int] = []
    loop = asyncio.get_running_loop()
    bench.watch._take_signals = lambda: loop.add_signal_handler(signal.SIGTERM, got.append, 15)

    try:
        async with bench.running():
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: got)
            bench.cluster.put(QUEUE, taskqueue("emails"))
            await until(lambda: bench.names() == ["emails"])
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGINT)

    assert got == [15]


async def test_an_api_server_that_refuses_it_is_asked_again(bench: Bench) -> None:
    async def refuse(_: Any) -> Any:
        return refusal(403, "forbidden")

    bench.server.respond = refuse
    loop = Loop("watch", bench.watch.tick)
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run())
        for restarts in (1, 2):
            await until(lambda restarts=restarts: bench.watch.restarts == restarts)  # type: ignore[misc]
            await bench.relist.tick()
        bench.server.respond = None
        await until(lambda: bench.server.watching == 2)
        loop.stop()
        bench.watch.restart()


async def test_pauses_grow_and_stay_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> str:
        return "a failure"

    monkeypatch.setattr(bench.watch, "_live", fail)
    bench.watch._pause = timedelta(seconds=1)

    pauses = []
    for _ in range(9):
        await bench.relist.tick()
        pauses.append((await bench.watch.tick()).total_seconds())

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_while_the_api_server_is_away_it_is_not_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives: list[str] = []

    async def fail() -> str:
        lives.append("a life")
        return "a failure"

    monkeypatch.setattr(bench.watch, "_live", fail)
    await bench.watch.tick()
    bench.cluster.away = True
    for _ in range(5):
        await bench.relist.tick()
        await bench.watch.tick()
    assert len(lives) == 1

    bench.cluster.away = False
    await bench.relist.tick()
    await bench.watch.tick()

    assert len(lives) == 2


async def test_it_waits_for_the_first_list(server: ApiServer) -> None:
    watch = Bench(server).watch

    assert await watch.tick() > timedelta(0)

    assert server.asked == []


async def test_what_comes_changes_and_goes_is_told(bench: Bench) -> None:
    async with bench.running():
        bench.cluster.put(QUEUE, taskqueue("emails", maxReplicas=1))
        bench.cluster.put(Kind.CRON_TASK, taskqueue("digest"))
        await until(lambda: bench.names() == ["emails"])
        await until(lambda: bench.inventory.get(Kind.CRON_TASK, "shop", "digest"))

        bench.cluster.put(QUEUE, taskqueue("emails", maxReplicas=2))
        await until(lambda: bench.inventory.objects(QUEUE)[0]["spec"] == {"maxReplicas": 2})

        bench.cluster.remove(QUEUE, "shop", "emails")
        await until(lambda: bench.names() == [])


async def test_it_writes_nothing_and_lists_no_other_kind(bench: Bench) -> None:
    bench.cluster.put(QUEUE, taskqueue("emails"))
    async with bench.running():
        bench.cluster.put(QUEUE, taskqueue("emails", maxReplicas=1))
        await until(lambda: bench.inventory.objects(QUEUE)[0]["spec"] == {"maxReplicas": 1})

    assert {asked.method for asked in bench.server.asked} == {"GET"}
    paths = {asked.path for asked in bench.server.asked if "watch" in asked.query}
    assert paths == {
        "/apis/tidework.dev/v1alpha1/taskqueues",
        "/apis/tidework.dev/v1alpha1/crontasks",
    }
    listed = {
        asked.path.rpartition("/")[2] for asked in bench.server.asked if asked.path not in paths
    }
    assert listed <= {"api", "apis", "v1", "v1alpha1"}


async def test_watches_are_bounded_in_time(bench: Bench) -> None:
    async with bench.running():
        pass

    (query, *_) = [asked.query for asked in bench.server.asked if "watch" in asked.query]
    assert query["timeoutSeconds"] == "300"
    assert query["allowWatchBookmarks"] == "true"


async def test_only_the_watched_namespaces_are_watched(server: ApiServer) -> None:
    bench = Bench(server, ("shop",))
    await bench.relist.tick()
    async with bench.running():
        bench.cluster.put(QUEUE, taskqueue("emails", namespace="other"))
        bench.cluster.put(QUEUE, taskqueue("emails", namespace="shop"))
        await until(bench.names)

    assert len(bench.inventory.objects(QUEUE)) == 1
    paths = {asked.path for asked in server.asked if "watch" in asked.query}
    assert all("/namespaces/shop/" in path for path in paths)


async def test_a_silent_watch_is_begun_anew_by_the_relist(bench: Bench) -> None:
    bench.relist._on_silent = bench.watch.restart
    bench.relist._hasty = 0
    async with bench.running():
        bench.server.deaf = True
        bench.cluster.put(QUEUE, taskqueue("emails"))
        await bench.relist.tick()
        assert bench.names() == ["emails"]
        taken = bench.signals_taken

        await bench.relist.tick()
        await until(lambda: bench.signals_taken > taken and bench.server.watching == 2)
        bench.server.deaf = False
        bench.cluster.put(QUEUE, taskqueue("reports"))
        await until(lambda: bench.names() == ["emails", "reports"])
