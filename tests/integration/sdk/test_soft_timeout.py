"""A soft timeout that strikes in the middle of a request leaves a client that can be used."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.support.servers import ValkeyServer
from tidework import SoftTimeout
from tidework.broker.connection.transport import drive
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.worker.child.soft_timeout import call_limited

pytestmark = pytest.mark.timeout(60, method="thread")  # the other method is SIGALRM as well


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """One that may be stopped for a while."""
    with ValkeyServer() as found:
        yield found


def test_the_reply_that_was_not_waited_for_is_nobodys(server: ValkeyServer) -> None:
    broker = connect_blocking(server.url)

    def ask(word: str) -> bytes:
        found: bytes = drive(broker.transport.command("ECHO", word))
        return found

    assert ask("before") == b"before"
    server.freeze()
    with pytest.raises(SoftTimeout):
        call_limited(lambda: ask("lost"), 0.2)
    threading.Timer(0.2, server.thaw).start()

    assert [ask(word) for word in ("a", "b")] == [b"a", b"b"]
    drive(broker.close())
