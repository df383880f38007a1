"""Rights that only some servers ask for, a password that is rotated, a system under its users."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest
import redis

from tests.integration.broker.acl_scenes import job
from tests.integration.worker.processes import WorkerProcess
from tests.support.acl import DOCUMENT, PASSWORD, Rules, User, documented_roles, say, without
from tests.support.clusters import ThreeNodes
from tests.support.sentinels import SERVICE, SentinelProcess
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.broker.connection.transport import AsyncTransport
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.client import Client
from tidework.errors import BrokerError, BrokerRefusedError, NotDurableError
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.settings import Settings

ROLES = documented_roles()
QUEUE = QueueName("shop", "emails")
OF_CLUSTERS = ("+cluster|slots", "+asking")
OF_SENTINELS = ("+client|setname", "+sentinel|get-master-addr-by-name")
CRONTASK = """\
apiVersion: tidework.dev/v1alpha1
kind: TaskQueue
metadata: {name: jobs, namespace: shop}
spec: {app: hostile}
---
apiVersion: tidework.dev/v1alpha1
kind: CronTask
metadata: {name: ticks, namespace: shop}
spec: {queue: jobs, task: add, params: {a: 1, b: 2}, every: 1s}
"""


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def client(server: ValkeyServer) -> Iterator[redis.Redis]:
    with server.client() as found:
        yield found


def test_the_document_names_the_further_rights() -> None:
    text = DOCUMENT.read_text("utf-8")
    for rules in (("+select",), ("+wait",), ("+waitaof",), OF_CLUSTERS, OF_SENTINELS):
        assert f"`{shlex.join(rules)}`".replace("'+asking'", "+asking") in text


async def enqueue(url: str, *queues: QueueName) -> None:
    """Raises BrokerError."""
    broker = connect(url)
    try:
        for queue in queues or (QUEUE,):
            await broker.enqueue(queue, [job("a")])
    finally:
        await broker.close()


async def test_another_database_needs_select(server: ValkeyServer, client: redis.Redis) -> None:
    user = User(client, "producer", "shop")
    url = user.url(server.url).removesuffix("/0") + "/3"
    user.allow(ROLES["producer"])
    with pytest.raises(BrokerRefusedError, match="select"):
        await enqueue(url)

    user.allow((*ROLES["producer"], "+select"))

    await enqueue(url)


@pytest.mark.parametrize(
    ("durability", "command"), [(Durability.REPLICA, "wait"), (Durability.FSYNC, "waitaof")]
)
async def test_durability_needs_the_right_to_ask_for_it(
    server: ValkeyServer, client: redis.Redis, durability: Durability, command: str
) -> None:
    staff = connect(server.url)
    await staff.configure(QUEUE, 1, durability)
    await staff.close()
    user = User(client, "producer", "shop")
    user.allow(ROLES["producer"])
    within = timedelta(seconds=3) if durability is Durability.FSYNC else timedelta(milliseconds=50)
    broker = RedisBroker(AsyncTransport(user.url(server.url), durable_within=within))
    try:
        with pytest.raises(BrokerRefusedError, match=f"allow {command.upper()} to its user"):
            await broker.enqueue(QUEUE, [job("a")])

        user.allow((*ROLES["producer"], f"+{command}"))

        if durability is Durability.FSYNC:
            await broker.enqueue(QUEUE, [job("b")])
        else:
            with pytest.raises(NotDurableError):  # asked, and there is no replica
                await broker.enqueue(QUEUE, [job("b")])
    finally:
        await broker.close()
    assert user.refusals() == [command]


def allow_everywhere(cluster: ThreeNodes, rules: Rules) -> None:
    for node in cluster.nodes:
        with node.client() as client:
            User(client, "producer", "shop").allow(rules)


async def test_a_cluster_needs_its_map_and_what_follows_a_moving_queue() -> None:
    with ThreeNodes() as cluster:
        queue, near = (cluster.queue_on(node, "shop") for node in cluster.nodes[:2])
        places = cluster.url().removeprefix("redis+cluster://")
        url = f"redis+cluster://producer:{PASSWORD}@{places}"
        rules = (*ROLES["producer"], *OF_CLUSTERS)
        allow_everywhere(cluster, without(rules, "cluster|slots"))
        with pytest.raises(BrokerRefusedError, match="says which one has which slots"):
            await enqueue(url, queue)
        allow_everywhere(cluster, rules)
        await enqueue(url, queue, near)

        cluster.announce_move(queue, cluster.nodes[1])
        cluster.move_keys(queue, cluster.nodes[1])
        # All keys of a call have to be there, and all of this one are.
        broker = connect(url)
        try:
            key = f"tw1:{{{queue}}}:jobs"
            assert await broker.transport.command("HGET", key, "a")
            allow_everywhere(cluster, without(rules, "asking"))
            with pytest.raises(BrokerError):
                await broker.transport.command("HGET", key, "a")
        finally:
            await broker.close()


async def test_sentinels_have_users_of_their_own(server: ValkeyServer, client: redis.Redis) -> None:
    User(client, "producer", "shop").allow(ROLES["producer"])
    with SentinelProcess(server.port) as sentinel, sentinel.client() as door:
        url = f"redis+sentinel://producer:{PASSWORD}@127.0.0.1:{sentinel.port}/{SERVICE}/0"
        url += f"?sentinel_username=finder&sentinel_password={PASSWORD}"
        finder = User(door, "finder", "shop")
        for command in OF_SENTINELS:
            finder.allow(tuple(rule for rule in OF_SENTINELS if rule != command))
            with pytest.raises(BrokerRefusedError, match="no Sentinel says"):
                await enqueue(url)

        finder.allow(OF_SENTINELS)

        await enqueue(url)


async def test_a_user_has_two_passwords_while_one_is_rotated(
    server: ValkeyServer, client: redis.Redis, tmp_path: Path
) -> None:
    user, file = User(client, "producer", "shop"), tmp_path / "password"
    user.allow(ROLES["producer"])
    file.write_text(PASSWORD)
    settings = Settings(redis_url=server.url, redis_username=user.name, redis_password_file=file)
    broker = connect(settings.redis_url)
    await broker.enqueue(QUEUE, [job("a")])

    say(client, "ACL", "SETUSER", user.name, ">fresh")
    say(client, "CLIENT", "KILL", "USER", user.name)
    wait_until(
        lambda: all(each["user"] != user.name for each in client.client_list()), "it is away"
    )
    await broker.enqueue(QUEUE, [job("b")])  # over a new connection: the old one is found closed
    file.write_text("fresh")
    say(client, "ACL", "SETUSER", user.name, f"<{PASSWORD}")

    # Connections that stand go on; those made from now on have the new password.
    await broker.enqueue(QUEUE, [job("c")])
    await broker.close()
    await broker.enqueue(QUEUE, [job("d")])
    assert (await broker.stats(QUEUE)).states[JobState.READY] == 4
    await broker.close()
    assert user.refusals() == []


class Scheduler:
    """``tidework scheduler`` on a file. A context manager."""

    def __init__(self, url: str, folder: Path) -> None:
        self._file = folder / "shop.yaml"
        self._file.write_text(CRONTASK)
        self._log = folder / "scheduler.log"
        self._environment = {**os.environ, "TIDEWORK_REDIS_URL": url}

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "tidework", "scheduler", str(self._file)]
            self._process = subprocess.Popen(command, env=self._environment, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        assert self._process.wait(30) == 0, self._log.read_text()


def test_a_whole_system_runs_under_its_users(
    server: ValkeyServer, client: redis.Redis, tmp_path: Path
) -> None:
    users = {role: User(client, f"shop-{role}", "shop") for role in ROLES}
    urls = {role: user.url(server.url) for role, user in users.items()}
    for role, user in users.items():
        user.allow(ROLES[role])
    producer = Client(Settings(redis_url=urls["producer"], namespace="shop"))
    viewer = Client(Settings(redis_url=urls["viewer"], namespace="shop"))
    with ExitStack() as stack:
        stack.callback(producer.close_sync)
        stack.callback(viewer.close_sync)
        given = {"redis_url": urls["worker"], "namespace": "shop"}
        worker = WorkerProcess("hostile", tmp_path / "worker.log", given)
        stack.callback(worker.end)
        stack.enter_context(Scheduler(urls["scheduler"], tmp_path))
        worker.wait_started()

        with redis.Redis.from_url(urls["inbox"], protocol=2) as foreign:
            document = b'{"id":"foreign","task":"add","params":{"a":2,"b":3}}'
            foreign.lpush("tw1:{shop/jobs}:inbox", document)
        client.script_flush()
        (found,) = producer.enqueue_sync("jobs", [job_of("own", "add", a=3, b=4)])
        assert producer.result_sync(found.id, queue="jobs", timeout=20) == 7
        wait_until(lambda: counted(viewer, "succeeded") >= 4, "two fires, and both jobs")
        assert viewer.result_sync("foreign", queue="jobs", timeout=20) == 5
        with pytest.raises(BrokerRefusedError, match="user 'shop-viewer'"):
            viewer.enqueue_sync("jobs", [job_of("more", "add", a=1, b=1)])

    assert worker.remains() == []
    refused = {role: user.refusals() for role, user in users.items()}
    assert {role for role, found in refused.items() if found} == {"viewer"}


def counted(viewer: Client, name: str) -> int:
    return viewer.stats_sync("jobs").counters.get(name, 0)


def job_of(name: str, task: str, **params: int) -> Job:
    return Job(name, task, params)
