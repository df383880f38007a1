"""What is sent behind a write, and which answers to it are enough."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tidework.broker.connection.durable import DURABLE_WITHIN, check_reply, confirming
from tidework.broker.connection.servers import REPLY_TIMEOUT_S
from tidework.errors import BrokerRefusedError, NotDurableError
from tidework.model.durability import Durability
from tidework.model.redis_url import Place

WITHIN = timedelta(seconds=2)
A = Place("a", 6379)


def check(durability: Durability, reply: Any) -> None:
    check_reply(durability, reply, A, WITHIN, named_by="the URL")


def test_what_is_sent() -> None:
    assert confirming(Durability.ASYNC, WITHIN) == ()
    assert confirming(Durability.REPLICA, WITHIN) == (("WAIT", 1, 2000),)
    assert confirming(Durability.FSYNC, WITHIN) == (("WAITAOF", 1, 0, 2000),)
    assert DURABLE_WITHIN.total_seconds() < REPLY_TIMEOUT_S


@pytest.mark.parametrize(
    ("durability", "reply"),
    [
        (Durability.ASYNC, None),
        (Durability.REPLICA, 1),
        (Durability.REPLICA, 2),
        (Durability.FSYNC, [1, 0]),
    ],
)
def test_what_is_enough(durability: Durability, reply: Any) -> None:
    check(durability, reply)


@pytest.mark.parametrize(
    ("durability", "reply", "who"),
    [
        (Durability.REPLICA, 0, "0 of 1 replicas"),
        (Durability.FSYNC, [0, 1], "0 of 1 append-only files"),
    ],
)
def test_what_is_not(durability: Durability, reply: Any, who: str) -> None:
    with pytest.raises(NotDurableError, match=f"a:6379 has stored this.*{who}.*within 2 s"):
        check(durability, reply)


@pytest.mark.parametrize(
    ("durability", "command"), [(Durability.REPLICA, "WAIT "), (Durability.FSYNC, "WAITAOF ")]
)
def test_who_may_not_ask_is_told_how_to_mend_it(durability: Durability, command: str) -> None:
    with pytest.raises(BrokerRefusedError, match=f"allow {command}to its user"):
        check(durability, ResponseError("NOPERM this user"))
