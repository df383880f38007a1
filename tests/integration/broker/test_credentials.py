"""A password in a file is rotated under running programs; a wrong one is told apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.worker.jobs import Jobs
from tests.integration.worker.processes import WorkerProcess
from tests.support.clusters import ThreeNodes
from tests.support.servers import ValkeyServer
from tests.support.waiting import wait_until
from tidework.broker.connection.credentials import PasswordFile
from tidework.broker.redis.redis_broker import RedisBroker, connect
from tidework.client import Client
from tidework.errors import BrokerRefusedError
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.settings import Settings

QUEUE = QueueName("shop", "emails")
USER = "worker"


class Account:
    """A user of a server, and the file with its password."""

    def __init__(self, server: ValkeyServer, file: Path) -> None:
        self.file = file
        self._server = server

    def set_password(self, password: str) -> None:
        """Of the user; connections that stand are ended, as by a restart of the server."""
        with self._server.client() as client:
            rules = ("reset", "on", f">{password}", "~tw1:*", "+@all")
            client.execute_command("ACL", "SETUSER", USER, *rules)
            client.execute_command("CLIENT", "KILL", "USER", USER)
            wait_until(
                lambda: all(each["user"] != USER for each in client.client_list()),
                "the user's connections have ended",
            )

    async def change_password(self, password: str) -> None:
        """The same, and the event loop takes notice of it."""
        await asyncio.to_thread(self.set_password, password)

    def write(self, password: str) -> None:
        """As a mounted Secret is changed: the file is replaced by another."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{password}\n")
        fresh.replace(self.file)

    @property
    def settings(self) -> Settings:
        """Of a program that reads the file."""
        return Settings(
            redis_url=self._server.url, redis_username=USER, redis_password_file=self.file
        )


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


@pytest.fixture
def account(server: ValkeyServer, tmp_path: Path) -> Account:
    found = Account(server, tmp_path / "password")
    found.set_password("first")
    found.write("first")
    return found


@pytest.fixture
async def broker(account: Account) -> AsyncIterator[RedisBroker]:
    found = connect(account.settings.redis_url)
    yield found
    await found.close()


def job(name: str) -> Job:
    return Job(name, "t", {})


async def test_a_rotated_password_needs_no_restart(account: Account, broker: RedisBroker) -> None:
    await broker.enqueue(QUEUE, [job("a")])
    assert await broker.wait_for_document(QUEUE, timedelta(seconds=20)) == b"!"
    await account.change_password("second")
    account.write("second")

    await broker.enqueue(QUEUE, [job("b")])
    await broker.upkeep(QUEUE)
    assert await broker.wait_for_document(QUEUE, timedelta(seconds=20)) == b"!"
    assert (await broker.stats(QUEUE)).states[JobState.READY] == 2


async def test_until_the_file_is_right_the_refusal_names_it(
    account: Account, broker: RedisBroker
) -> None:
    await broker.enqueue(QUEUE, [job("a")])
    await account.change_password("second")

    with pytest.raises(BrokerRefusedError, match=f"user '{USER}'.*file {account.file}") as caught:
        await broker.enqueue(QUEUE, [job("b")])
    assert "first" not in str(caught.value)
    account.write("")
    with pytest.raises(BrokerRefusedError, match="is empty"):
        await broker.enqueue(QUEUE, [job("b")])
    account.file.unlink()
    with pytest.raises(BrokerRefusedError, match="No such file"):
        await broker.enqueue(QUEUE, [job("b")])

    account.write("second")
    await broker.enqueue(QUEUE, [job("b")])
    assert (await broker.stats(QUEUE)).states[JobState.READY] == 2


class UrlInAFile:
    """A user whose URL is in a file, as in a mounted Secret."""

    def __init__(self, server: ValkeyServer, account: Account) -> None:
        self.file = account.file.with_name("url")
        self._place = server.url.removeprefix("redis://")

    def write(self, password: str) -> None:
        self.file.write_text(f"redis://{USER}:{password}@{self._place}\n")

    @property
    def settings(self) -> Settings:
        """Of a program that reads the file."""
        return Settings(redis_url_file=self.file)


async def test_a_renewed_url_needs_no_restart(server: ValkeyServer, account: Account) -> None:
    renewed = UrlInAFile(server, account)
    renewed.write("first")
    broker = connect(renewed.settings.redis_url)
    await broker.enqueue(QUEUE, [job("a")])
    await account.change_password("second")
    with pytest.raises(BrokerRefusedError, match=f"URL in the file {renewed.file}") as caught:
        await broker.enqueue(QUEUE, [job("b")])
    assert "first" not in str(caught.value)

    renewed.write("second")
    await broker.enqueue(QUEUE, [job("b")])

    renewed.file.write_text(f"redis://{USER}:second@elsewhere")
    await account.change_password("third")
    with pytest.raises(BrokerRefusedError, match="names elsewhere:6379 by now, which counts after"):
        await broker.enqueue(QUEUE, [job("c")])
    renewed.file.write_text("http://:hidden@h")
    with pytest.raises(BrokerRefusedError, match="is wrong: use redis://") as told:
        await broker.enqueue(QUEUE, [job("c")])
    assert "hidden" not in str(told.value)
    await broker.close()


async def test_a_url_file_that_is_gone_changes_nothing(
    server: ValkeyServer, account: Account
) -> None:
    renewed = UrlInAFile(server, account)
    renewed.write("first")
    broker = connect(renewed.settings.redis_url)
    renewed.file.unlink()
    await broker.enqueue(QUEUE, [job("a")])
    await account.change_password("first")

    await broker.enqueue(QUEUE, [job("b")])

    assert (await broker.stats(QUEUE)).states[JobState.READY] == 2
    await broker.close()


async def test_a_url_file_does_for_a_server_without_a_password(
    server: ValkeyServer, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    file.write_text(server.url)
    broker = connect(Settings(redis_url_file=file).redis_url)

    await broker.enqueue(QUEUE, [job("a")])

    await broker.close()


def test_a_running_worker_reads_a_renewed_url_and_says_why_it_waits(
    server: ValkeyServer, account: Account, tmp_path: Path
) -> None:
    renewed = UrlInAFile(server, account)
    renewed.write("first")
    given = {"redis_url_file": renewed.file, "namespace": "shop"}
    jobs = Jobs(Client(renewed.settings.model_copy(update={"namespace": "shop"})))
    worker = WorkerProcess("hostile", tmp_path / "worker.log", given)
    try:
        worker.wait_started()
        assert worker.probe("/redisz") == (200, "ok\n")
        account.set_password("second")
        why = f"URL in the file {renewed.file}: put it right there"
        wait_until(lambda: why in worker.probe("/redisz")[1], "it is refused, and says why")
        assert worker.probe("/readyz")[0] == 200
        renewed.write("second")

        assert jobs.result(jobs.put("add", a=1, b=1)) == 2
        wait_until(lambda: worker.probe("/redisz")[0] == 200, "Redis answers again")
    finally:
        worker.end()
        jobs.client.close_sync()
    assert worker.remains() == []


async def test_a_file_that_changes_while_its_password_is_tried_is_read_once_more(
    account: Account, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = iter(("old", "first"))
    monkeypatch.setattr(PasswordFile, "get_credentials", lambda _: (USER, next(passwords)))

    await broker.enqueue(QUEUE, [job("a")])

    assert next(passwords, None) is None


def test_a_program_without_an_event_loop_goes_on_too(account: Account) -> None:
    client = Client(account.settings)
    assert client.enqueue_sync("emails", [job("a")])
    account.set_password("second")
    with pytest.raises(BrokerRefusedError, match=str(account.file)):
        client.enqueue_sync("emails", [job("b")])

    account.write("second")

    assert client.enqueue_sync("emails", [job("b")])
    client.close_sync()


def test_a_running_worker_goes_on(server: ValkeyServer, account: Account, tmp_path: Path) -> None:
    login = {"redis_username": USER, "redis_password_file": account.file}
    given = {"redis_url": server.url, "namespace": "shop", **login}
    jobs = Jobs(Client(Settings.load(**given)))
    worker = WorkerProcess("hostile", tmp_path / "worker.log", given)
    try:
        worker.wait_started()
        account.set_password("second")
        wait_until(lambda: str(account.file) in worker.text(), "it is refused, and says why")
        account.write("second")

        assert jobs.result(jobs.put("add", a=1, b=1)) == 2
    finally:
        worker.end()
        jobs.client.close_sync()
    assert worker.remains() == []


async def test_every_server_of_a_cluster_takes_the_rotated_password(tmp_path: Path) -> None:
    with ThreeNodes() as cluster:
        accounts = [Account(node, tmp_path / "password") for node in cluster.nodes]
        for each in accounts:
            each.set_password("first")
            each.write("first")
        queues = [cluster.queue_on(node, "shop") for node in cluster.nodes]
        broker = connect(f"{cluster.url()}?username={USER}&password_file={accounts[0].file}")
        for queue in queues:
            await broker.enqueue(queue, [job("a")])
        for each in accounts:
            await each.change_password("second")
            each.write("second")
        for queue in queues:
            await broker.enqueue(queue, [job("b")])
            assert (await broker.stats(queue)).states[JobState.READY] == 2
        await broker.close()
