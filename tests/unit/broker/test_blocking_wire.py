"""Connections of programs without an event loop: whose replies are whose, and what is closed."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import BusyLoadingError, ResponseError
from redis.exceptions import ConnectionError as AwayError
from redis.exceptions import TimeoutError as LateError

from tests.support.waiting import wait_until
from tests.unit.broker.scripted_server import Answers, ScriptedServer
from tidework.broker.connection import blocking_wire
from tidework.broker.connection.blocking_wire import BlockingConnections
from tidework.broker.connection.packing import Command

OK: Answers = [[b"+OK\r\n"]]


@pytest.fixture(params=["with hiredis", "without hiredis"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without hiredis":
        monkeypatch.setattr(blocking_wire, "hiredis", None)


def connections(server: ScriptedServer, **options: Any) -> BlockingConnections:
    usual = {"max_connections": 2, "timeout": 20.0, "socket_timeout": 20.0, "driver_info": None}
    where = {"host": "127.0.0.1", "port": server.port, "protocol": 2}
    return BlockingConnections(usual | where | options)


def ask(found: BlockingConnections, *commands: Command) -> list[Any]:
    connection = found.take()
    try:
        replies = connection.send(commands)
    except BaseException:
        found.give_up(connection)
        raise
    found.give_back(connection)
    return replies


def test_replies_come_in_pieces_and_several_at_once() -> None:
    with ScriptedServer([[b"*2\r\n$2\r\nok\r", b"\n:1\r\n+OK", b"\r\n"]]) as server:
        found = connections(server)

        assert ask(found, ("GET", "a"), ("SET", "a", 5)) == [[b"ok", 1], b"OK"]
        found.end_all()
    assert server.asked == [
        b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n5\r\n"
    ]


def test_an_error_stands_in_the_place_of_its_reply() -> None:
    with ScriptedServer([[b"-ERR no\r\n+OK\r\n"]]) as server:
        found = connections(server)
        error, ok = ask(found, ("NO",), ("SET", "a", 1))
        found.end_all()

    assert (type(error), str(error), ok) == (ResponseError, "no", b"OK")


def test_a_server_that_still_loads_answers_nothing() -> None:
    with ScriptedServer([[b"-LOADING wait\r\n"]], OK) as server:
        found = connections(server)
        with pytest.raises(BusyLoadingError):
            ask(found, ("GET", "a"))

        assert ask(found, ("GET", "a")) == [b"OK"], "over a new connection"
        found.end_all()


def test_a_lost_reply_ends_the_connection() -> None:
    with ScriptedServer([[]], OK) as server:
        found = connections(server)
        with pytest.raises(AwayError, match=r"(?i)connection closed by"):
            ask(found, ("GET", "a"))

        assert ask(found, ("GET", "b")) == [b"OK"]
        found.end_all()
    assert b"\r\nb\r\n" in server.asked[1]


def test_a_reply_that_is_late_is_nobody_elses() -> None:
    with ScriptedServer([[], [b"+of a\r\n"]], OK) as server:
        found = connections(server, socket_timeout=0.05)
        with pytest.raises(LateError):
            ask(found, ("GET", "a"))

        assert ask(found, ("GET", "b")) == [b"OK"]
        found.end_all()


@pytest.mark.parametrize("answer", [[b"+OK\r\n+more\r\n"], [b"+OK\r\n", b"-ERR bye\r\n"]])
def test_what_nobody_asked_for_is_nobodys_reply(answer: list[bytes]) -> None:
    with ScriptedServer([answer, [b"+wrong\r\n"]], OK) as server:
        found = connections(server)
        assert ask(found, ("GET", "a")) == [b"OK"]
        wait_until_disturbed(found)

        assert ask(found, ("GET", "b")) == [b"OK"]
        found.end_all()
    assert len(server.asked) == 2


def test_a_connection_that_the_server_closed_is_replaced_before_it_is_used() -> None:
    with ScriptedServer(OK, OK) as server:
        found = connections(server)
        assert ask(found, ("GET", "a")) == [b"OK"]
        wait_until_disturbed(found)

        assert ask(found, ("GET", "b")) == [b"OK"]
        found.end_all()
    assert len(server.asked) == 2


def wait_until_disturbed(found: BlockingConnections) -> None:
    """Until what the server did has arrived at the connection that is idle."""
    assert found._idle.qsize() == 1
    idle = found._idle.get()
    assert idle is not None
    wait_until(lambda: not idle.is_usable(), "the connection is disturbed")
    found._idle.put(idle)


def test_one_connection_serves_one_request_after_the_other() -> None:
    with ScriptedServer([*OK] * 5) as server:
        found = connections(server)

        for _ in range(5):
            assert ask(found, ("GET", "a")) == [b"OK"]
        found.end_all()


def test_whoever_finds_none_free_waits_and_is_told() -> None:
    with ScriptedServer(OK, OK) as server:
        found = connections(server, timeout=0.01)
        first, second = found.take(), found.take()
        with pytest.raises(AwayError, match="no connection is free"):
            found.take()

        found.give_back(first)
        assert found.take() is first
        found.give_up(first)
        found.give_up(second)


def test_after_the_end_a_connection_ends_with_its_use() -> None:
    with ScriptedServer(OK) as server:
        found = connections(server)
        used = found.take()
        found.end_all()

        assert used.send([("GET", "a")]) == [b"OK"]
        found.give_back(used)
        assert found._idle.empty()
