"""Connections: files that are wrong, passwords that change, queues of several servers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import lines
from tests.support.servers import free_port
from tidework.broker.broker import Broker, Leader
from tidework.broker.connection.transport import Call
from tidework.broker.scripts import Value, load_script
from tidework.errors import (
    BrokerError,
    BrokerRefusedError,
    BrokerUnavailableError,
    ConfigurationError,
)
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.lease import QueueLimits
from tidework.testing.memory.broker import MemoryBroker
from tidework_operator.connections import (
    Connections,
    RereadTransport,
    read_url,
)
from tidework_operator.queue_broker import QueueBroker

EMAILS, REPORTS = QueueName("shop", "emails"), QueueName("shop", "reports")
CALL = Call(load_script("take_term"), (), ())


def limits(_queue: QueueName) -> QueueLimits:
    return QueueLimits()


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({}, "needs a file `url`"),
        ({"port": "6379"}, "or a file `host`"),
        ({"url": "http://redis"}, "url: use redis://"),
        ({"url": "redis://:one@redis", "password": "two"}, "url: .* keep one of the two"),
        ({"host": "redis", "port": "many"}, "port: use a number from 1 to 65535"),
        ({"host": "redis", "port": "70000"}, "port: use a number"),
        ({"host": "redis", "database": "-1"}, "database: use a number"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, files: dict[str, str], fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault):
        read_url(write(tmp_path / "cache", **files))


def test_a_fault_tells_no_secret(tmp_path: Path) -> None:
    folder = write(tmp_path / "cache", url="http://shop:hunter2@redis")

    with pytest.raises(ConfigurationError) as fault:
        read_url(folder)

    assert "hunter2" not in str(fault.value)


@pytest.mark.parametrize(
    ("files", "url"),
    [
        ({"url": "rediss://u:p@h:1/2\n"}, "rediss://u:p@h:1/2"),
        ({"host": "redis\n"}, "redis://redis:6379/0"),
        ({"host": "h", "port": "7", "database": "3", "tls": "true"}, "rediss://h:7/3"),
        ({"host": "h", "password": "x"}, "redis://h:6379/0?password_file=FOLDER/password"),
        (
            {"host": "h", "username": "shop", "password": "x"},
            "redis://h:6379/0?username=shop&password_file=FOLDER/password",
        ),
        (
            {"url": "redis+sentinel://a,b/main", "password": "x"},
            "redis+sentinel://a,b/main?password_file=FOLDER/password",
        ),
        ({"host": "fd00::1"}, "redis://[fd00::1]:6379/0"),
    ],
)
def test_files_make_a_url(tmp_path: Path, files: dict[str, str], url: str) -> None:
    folder = write(tmp_path / "default", **files)
    assert read_url(folder) == url.replace("FOLDER", str(folder))


def test_a_missing_connection_says_what_there_is_and_how_to_mend_it(tmp_path: Path) -> None:
    write(tmp_path / "cache", host="redis")
    connections = Connections(tmp_path, "redis://127.0.0.1:1/0", limits)

    with pytest.raises(ConfigurationError) as fault:
        connections.broker("slow")

    said = str(fault.value)
    assert "no Redis connection 'slow'" in said
    assert "cache, default" in said
    assert "`connections`" in said
    assert "spec.redis" in said


@pytest.mark.parametrize("name", ["..", "../cache", "", "..data"])
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    write(tmp_path, host="redis")
    write(tmp_path / "cache", host="redis")

    with pytest.raises(ConfigurationError, match="no Redis connection"):
        Connections(tmp_path / "cache", "", limits).broker(name)


def test_names_are_those_of_folders_and_the_default_of_the_environment(tmp_path: Path) -> None:
    write(tmp_path / "cache", host="redis")
    write(tmp_path / "..2026_01_05", host="redis")
    (tmp_path / "file").write_text("x")

    assert Connections(tmp_path, "", limits).names() == ("cache",)
    assert Connections(tmp_path, "redis://h", limits).names() == ("cache", "default")
    assert Connections(tmp_path / "none", "", limits).names() == ()


async def test_a_server_that_is_away_is_told_with_the_connection_to_mend(tmp_path: Path) -> None:
    write(tmp_path / "cache", url=f"redis://127.0.0.1:{free_port()}/0")
    connections = Connections(tmp_path, "", limits)

    with pytest.raises(BrokerUnavailableError) as fault:
        await connections.broker("cache").take_term(EMAILS)

    assert "the operator's connection 'cache' (chart value `connections`) names it" in str(
        fault.value
    )
    assert "--redis-url" not in str(fault.value)
    await connections.close()


async def test_a_connection_is_opened_once(tmp_path: Path) -> None:
    write(tmp_path / "cache", host="redis")
    connections = Connections(tmp_path, "", limits)

    assert connections.broker("cache") is connections.broker("cache")
    await connections.close()


class FakeTransport:
    """Refuses, is away, or answers with its URL."""

    def __init__(self, url: str, error: BrokerError | None = None) -> None:
        self.url = url
        self.error = error
        self.calls = 0
        self.closed = False

    async def run(self, call: Call, durability: Durability = Durability.ASYNC) -> Any:
        return self._answer()

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        return [self._answer() for _ in calls]

    async def run_each(self, calls: Sequence[Call]) -> list[Any]:
        return [self.error or self.url for _ in calls]

    async def command(self, *words: Value) -> Any:
        return self._answer()

    async def take(
        self, source: str, target: str, timeout: timedelta, then: Call | None = None
    ) -> tuple[bytes | None, Any]:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed = True

    def _answer(self) -> str:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.url


class Server:
    """What the files say, and which URLs are let in."""

    def __init__(self) -> None:
        self.url = "redis://old"
        self.refused = {"redis://wrong"}
        self.away: set[str] = set()
        self.opened: list[FakeTransport] = []

    def ask(self) -> str:
        return self.url

    def open_url(self, url: str) -> FakeTransport:
        error: BrokerError | None = None
        if url in self.refused:
            error = BrokerRefusedError("WRONGPASS")
        if url in self.away:
            error = BrokerUnavailableError("away")
        self.opened.append(FakeTransport(url, error))
        return self.opened[-1]

    def transport(self) -> RereadTransport:
        return RereadTransport(self.ask, self.open_url)


async def test_calls_that_fail_each_for_itself_are_left_to_whoever_made_them() -> None:
    for url in ("redis://wrong", "redis://away"):
        server = Server()
        server.away.add("redis://away")
        server.url = url
        transport = server.transport()
        server.url = "redis://new"

        refused = await transport.run_each([CALL, CALL])

        assert [isinstance(each, BrokerError) for each in refused] == [True, True]
        assert await transport.run_each([CALL]) == ["redis://new"]


async def test_refused_credentials_are_read_again_and_the_call_is_made_once_more() -> None:
    server = Server()
    transport = server.transport()
    server.opened[0].error = BrokerRefusedError("WRONGPASS")
    server.url = "redis://new"

    assert await transport.run(CALL) == "redis://new"
    assert await transport.command("PING") == "redis://new"
    assert await transport.run_all([CALL, CALL]) == ["redis://new"] * 2

    assert [found.closed for found in server.opened] == [True, False]
    assert server.opened[0].calls == 1


async def test_credentials_that_did_not_change_are_refused_and_not_hammered() -> None:
    server = Server()
    transport = server.transport()
    server.opened[0].error = BrokerRefusedError("WRONGPASS")

    with pytest.raises(BrokerRefusedError):
        await transport.run(CALL)

    assert server.opened[0].calls == 1
    assert len(server.opened) == 1


async def test_new_credentials_that_are_refused_too_end_it() -> None:
    server = Server()
    transport = server.transport()
    server.opened[0].error = BrokerRefusedError("WRONGPASS")
    server.url = "redis://wrong"

    with pytest.raises(BrokerRefusedError):
        await transport.run(CALL)

    assert [found.calls for found in server.opened] == [1, 1]


async def test_a_server_that_moved_is_found_by_the_next_call_and_nothing_is_resent() -> None:
    server = Server()
    transport = server.transport()
    server.opened[0].error = BrokerUnavailableError("away")
    server.url = "redis://new"

    with pytest.raises(BrokerUnavailableError):
        await transport.run(CALL)
    assert server.opened[1].calls == 0

    assert await transport.run(CALL) == "redis://new"


async def test_files_that_are_gone_leave_the_error_as_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()
    transport = server.transport()
    server.opened[0].error = BrokerRefusedError("WRONGPASS")

    def gone() -> str:
        raise ConfigurationError("no folder")

    transport._ask = gone
    with pytest.raises(BrokerRefusedError, match="WRONGPASS"):
        await transport.run(CALL)

    (line,) = lines(caplog, "redis_files_unreadable")
    assert "no folder" in line["message"]


async def test_a_call_that_was_refused_while_another_reopened_goes_the_new_way() -> None:
    server = Server()
    transport = server.transport()
    old = server.opened[0]
    old.error = BrokerRefusedError("WRONGPASS")
    server.url = "redis://new"
    await transport.run(CALL)

    assert await transport._reopen(old)

    assert len(server.opened) == 2


class TwoServers(Connections):
    """Connections in memory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "", limits)
        self.memories: dict[str, Any] = {"default": MemoryBroker(), "cache": MemoryBroker()}

    def broker(self, name: str) -> Broker:
        found: Broker = self.memories.get(name) or super().broker(name)
        return found


async def test_each_queue_is_served_by_its_own_server(tmp_path: Path) -> None:
    servers = TwoServers(tmp_path)
    names = {EMAILS: "default", REPORTS: "cache"}
    broker = QueueBroker(servers, names.__getitem__)

    await broker.open_queue(EMAILS)
    await broker.open_queue(REPORTS)
    await broker.take_term(REPORTS)

    assert await servers.memories["default"].queues() == (EMAILS,)
    assert await servers.memories["cache"].queues() == (REPORTS,)
    assert await broker.take_term(REPORTS) == 2
    assert await broker.take_term(EMAILS) == 1
    assert (await broker.gather(EMAILS, horizon=timedelta(0))).backlog == 0


async def test_a_missing_connection_is_trouble_of_its_queues_alone(tmp_path: Path) -> None:
    names = {EMAILS: "default", REPORTS: "slow"}
    broker = QueueBroker(TwoServers(tmp_path), names.__getitem__)

    with pytest.raises(BrokerRefusedError, match="no Redis connection 'slow'") as refused:
        await broker.take_term(REPORTS)

    assert isinstance(refused.value.__cause__, ConfigurationError)
    assert await broker.take_term(EMAILS) == 1


class Recorder:
    """A broker that writes down how it is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[object, ...], dict[str, object]]] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[str]]:
        async def call(*args: object, **kwargs: object) -> str:
            self.calls.append((name, args, kwargs))
            return f"answer to {name}"

        return call


OPERATIONS = {
    name: inspect.signature(method)
    for name, method in inspect.getmembers(QueueBroker, inspect.isfunction)
    if not name.startswith("_") and name != "close"
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_every_operation_reaches_the_broker_of_its_queue_as_it_was_called(
    tmp_path: Path, name: str
) -> None:
    servers, recorder = TwoServers(tmp_path), Recorder()
    servers.memories["cache"] = recorder
    broker = QueueBroker(servers, {REPORTS: "cache"}.__getitem__)
    args: list[object] = [REPORTS]
    kwargs: dict[str, object] = {}
    for parameter in list(OPERATIONS[name].parameters.values())[2:]:
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = object()
        else:
            args.append(object())

    answer = await getattr(broker, name)(*args, **kwargs)

    assert recorder.calls == [(name, tuple(args), kwargs)]
    assert answer in (f"answer to {name}", None)


def test_it_has_every_operation_of_its_roles() -> None:
    roles = {name for name, _ in inspect.getmembers(Leader, inspect.isfunction)}

    assert {name for name in roles if not name.startswith("_")} <= {*OPERATIONS, "close"}
    assert all(name in vars(QueueBroker) for name in OPERATIONS)
