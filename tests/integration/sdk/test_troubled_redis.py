"""The first call of a program to a Redis that is full, a replica, loading or away, and the next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.troubles import Trouble, Troubled, troubled_server
from tidework import Settings, Tidework
from tidework.errors import BrokerError, BrokerFullError, BrokerUnavailableError


@pytest.fixture
def redis() -> Iterator[Troubled]:
    with troubled_server() as found:
        yield found


@pytest.mark.parametrize("trouble", Trouble)
def test_it_is_told_at_once_and_the_next_call_is_done(redis: Troubled, trouble: Trouble) -> None:
    app = Tidework("shop", settings=Settings(redis_url=redis.url))

    @app.task
    def add(a: int) -> int:
        return a

    async def put() -> str:
        return (await add.enqueue(1)).id

    def put_sync() -> str:
        return add.enqueue_sync(1).id

    kind: type[BrokerError] = BrokerUnavailableError
    if trouble is Trouble.FULL:
        kind = BrokerFullError
    with asyncio.Runner() as runner:
        redis.begin(trouble)
        with pytest.raises(kind, match=trouble.value):
            runner.run(put())
        with pytest.raises(kind, match=trouble.value):
            put_sync()
        redis.mend(trouble)

        assert app.client.queue_length_sync("default") == 0, "nothing was done"
        assert runner.run(put()) != put_sync()
        assert app.client.queue_length_sync("default") == 2
        runner.run(app.client.close())
    app.client.close_sync()
