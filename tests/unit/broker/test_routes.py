"""Who is asked where keys are, in which order, how often, and what is said if nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from redis.exceptions import AuthenticationError, ResponseError
from redis.exceptions import ConnectionError as AwayError

from tests.unit.broker.fake_side import Answer, FakeSide
from tidework.broker.connection.cluster import ClusterRoute
from tidework.broker.connection.routes import Route
from tidework.broker.connection.sentinel import SentinelRoute
from tidework.broker.connection.servers import Servers
from tidework.errors import BrokerRefusedError, BrokerUnavailableError
from tidework.model.redis_url import Place, read_redis_url

A, B = Place("a", 6379), Place("b", 6379)
KEY = "tw1:{shop/emails}:term"


class Kept:
    """What routes want to keep connections to."""

    def __init__(self) -> None:
        self.last: list[Place] = []

    async def __call__(self, places: Sequence[Place]) -> None:
        self.last = list(places)


async def find(route: Route, key: str | None = KEY) -> Place:
    await route.prepare()
    return route.place_of(key)


def sentinel_route(side: FakeSide) -> tuple[SentinelRoute, Kept]:
    url = read_redis_url("redis+sentinel://s1,s2,s3/jobs")
    kept = Kept()
    return SentinelRoute(side, url, kept, "the URL"), kept


def cluster_route(side: FakeSide) -> tuple[ClusterRoute, Kept]:
    url = read_redis_url("redis+cluster://a,b")
    kept = Kept()
    servers = Servers(side, url, url.login, 5.0)
    return ClusterRoute(side, url, servers, kept, "the URL"), kept


def naming(place: Place) -> Answer:
    return lambda _: [place.host.encode(), str(place.port).encode()]


async def test_sentinels_are_asked_in_turn_and_one_answer_is_enough() -> None:
    side = FakeSide({"s1:26379": lambda _: None, "s2:26379": naming(A), "s3:26379": naming(B)})
    route, kept = sentinel_route(side)

    assert [await find(route), await find(route, None)] == [A, A]

    assert side.sent("s2:26379") == [("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "jobs")]
    assert side.sent("s3:26379") == []
    assert kept.last == [A]


async def test_a_sentinel_that_was_wrong_is_asked_last() -> None:
    side = FakeSide({"s1:26379": naming(A), "s2:26379": naming(B), "s3:26379": naming(B)})
    route, kept = sentinel_route(side)
    await find(route)

    route.doubt(A)
    route.doubt(A)  # as every request says that was under way

    assert await find(route) == B
    assert kept.last == [B]
    assert len(side.sent("s1:26379")) == 1
    assert side.sent("s3:26379") == []


async def test_many_who_ask_at_once_share_one_answer_and_one_failure() -> None:
    side = FakeSide({"s1:26379": naming(A)})
    route, _ = sentinel_route(side)
    assert await asyncio.gather(*(find(route) for _ in range(20))) == [A] * 20
    assert len(side.sent("s1:26379")) == 1

    for name in ("s1", "s2", "s3"):
        side.away[f"{name}:26379"] = AwayError("refused")
    route.doubt(A)
    opened = len(side.opened)
    found = await asyncio.gather(*(find(route) for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in found} == {BrokerUnavailableError}
    assert len(side.opened) == opened + 2
    tried = [each for each in side.opened if each.place == "s2:26379"]
    assert len(tried) == 1


async def test_whoever_asks_after_a_failure_asks_anew() -> None:
    side = FakeSide({f"s{number}:26379": naming(A) for number in (1, 2, 3)})
    side.away = {f"s{number}:26379": AwayError("refused") for number in (1, 2, 3)}
    route, _ = sentinel_route(side)
    with pytest.raises(BrokerUnavailableError, match=r"'jobs'.*s1:26379: refused.*the URL names"):
        await find(route)

    side.away.clear()

    assert await find(route) == A


@pytest.mark.parametrize(
    ("away", "answer", "wanted"),
    [
        (AuthenticationError("WRONG"), None, BrokerRefusedError),
        (None, lambda _: None, BrokerRefusedError),
        (None, lambda _: ResponseError("ERR unknown command"), BrokerRefusedError),
        (AwayError("refused"), None, BrokerUnavailableError),
    ],
)
async def test_a_refusal_is_told_apart_from_silence(
    away: AwayError | None, answer: Answer | None, wanted: type[Exception]
) -> None:
    side = FakeSide({})
    for name in ("s1:26379", "s2:26379", "s3:26379"):
        if away is not None:
            side.away[name] = away
        if answer is not None:
            side.answers[name] = answer
    route, _ = sentinel_route(side)

    with pytest.raises(wanted):
        await find(route)


def maps(*ranges: tuple[int, int, str]) -> Answer:
    found = [[first, last, [host.encode(), 6379, b"id"]] for first, last, host in ranges]
    return lambda _: found


async def test_the_map_says_where_a_key_is_and_any_server_knows_it() -> None:
    side = FakeSide({"b:6379": maps((0, 16383, "c"))})
    side.away["a:6379"] = AwayError("refused")
    route, kept = cluster_route(side)

    assert await find(route) == Place("c", 6379)
    assert await find(route, None) == Place("c", 6379)
    assert kept.last == [Place("c", 6379)]
    assert len(side.sent("b:6379")) == 1


async def test_a_server_without_a_name_is_where_it_was_asked() -> None:
    route, _ = cluster_route(FakeSide({"a:6379": maps((0, 16383, ""))}))

    assert await find(route) == A


async def test_a_slot_without_a_server_is_asked_for_anew_every_time() -> None:
    side = FakeSide({"a:6379": maps((0, 1, "a"))})
    route, _ = cluster_route(side)
    with pytest.raises(BrokerUnavailableError, match=rf"no server for slot \d+ .key {KEY}"):
        await find(route)

    side.answers["a:6379"] = maps((0, 16383, "a"))

    assert await find(route) == A


async def test_after_trouble_another_server_draws_the_map() -> None:
    cut_off = maps((0, 16383, "b"))
    side = FakeSide({"a:6379": cut_off, "b:6379": maps((0, 16383, "c"))})
    route, _ = cluster_route(side)
    assert await find(route) == B
    side.away["b:6379"] = AwayError("refused")

    route.doubt(B)
    assert await find(route) == B
    route.doubt(B)
    side.away.clear()
    side.away["a:6379"] = AwayError("refused")
    assert await find(route) == Place("c", 6379)


async def test_a_server_in_trouble_is_asked_for_the_map_only_if_no_other_answers() -> None:
    both = maps((0, 8191, "a"), (8192, 16383, "b"))
    side = FakeSide({"a:6379": both, "b:6379": both})
    route, _ = cluster_route(side)
    await find(route)
    assert side.sent("b:6379") == []

    route.doubt(B)
    await find(route)
    assert side.sent("b:6379") == []

    side.away["a:6379"] = AwayError("refused")
    route.doubt(B)
    await find(route)
    assert len(side.sent("b:6379")) == 1


async def test_servers_of_no_cluster_are_refused() -> None:
    no = ResponseError("ERR This instance has cluster support disabled")
    route, _ = cluster_route(FakeSide({"a:6379": lambda _: no, "b:6379": lambda _: []}))

    with pytest.raises(BrokerRefusedError, match=r"support disabled.*knows of no slots"):
        await find(route)
