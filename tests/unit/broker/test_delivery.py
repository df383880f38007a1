"""What goes out a second time by itself, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import ConnectionError as AwayError
from redis.exceptions import TimeoutError as LateError

from tests.unit.broker.fake_side import Answer, FakeSide, lost
from tidework.broker.connection.delivery import MOST_SENDS, Delivery, Request
from tidework.broker.connection.packing import Words
from tidework.broker.scripts import Call, load_script
from tidework.errors import BrokerError, BrokerRefusedError, BrokerUnavailableError
from tidework.model.identity import QueueName
from tidework.model.redis_url import read_redis_url

QUEUE = QueueName("shop", "emails")
SCRIPT = load_script("take_term")
CALL = Call(SCRIPT, SCRIPT.keys_of(QUEUE), ())
KEY = CALL[1][0]
SENTINELS = "redis+sentinel://s1,s2/jobs"


def delivery(side: FakeSide, url: str = "redis://a") -> Delivery:
    return Delivery(side, read_redis_url(url), "TIDEWORK_REDIS_URL")


async def ask(found: Delivery, *confirm: Words) -> Request:
    request = Request(KEY, CALL, after=confirm)
    await found.deliver([request])
    return request


def answers(*replies: Any) -> Answer:
    """One after the other, whatever is asked."""
    left = list(replies)
    return lambda _: left.pop(0)


def names(sent: list[Words]) -> list[str]:
    return [str(words[0]) for words in sent]


def slots_of(*ranges: tuple[int, int, str]) -> list[Any]:
    return [[first, last, [host.encode(), 6379, b"id"]] for first, last, host in ranges]


@pytest.mark.parametrize(
    "replies",
    [
        (7,),
        (NoScriptError("x"), 7),
        (NoScriptError("x"), NoScriptError("x")),
        (ReadOnlyError("x"), 7),
        (ResponseError("ERR x"),),
        (lost(LateError("late")),),
    ],
    ids=str,
)
@pytest.mark.parametrize("url", ["redis://a", SENTINELS])
@pytest.mark.parametrize("before", [(), (5,)], ids=["at first", "later"])
async def test_a_request_without_more_fares_as_any_other(
    replies: tuple[Any, ...], url: str, before: tuple[int, ...]
) -> None:
    ends = []
    for alone in (True, False):
        side = FakeSide({"a:6379": answers(*before, *replies)})
        side.answers |= dict.fromkeys(("s1:26379", "s2:26379"), lambda _: [b"a", b"6379"])
        found = delivery(side, url)
        for _ in before:
            await ask(found)
        said = await (say(found) if alone else say_in_a_list(found))
        ends.append((said, side.sent("a:6379"), [each.left for each in side.opened]))

    assert ends[0] == ends[1]
    assert len(ends[0][1]) >= len(before) + 1


async def say(found: Delivery) -> Any:
    try:
        return await found.ask(KEY, CALL)
    except BrokerError as error:
        return type(error), str(error), type(error.__cause__)


async def say_in_a_list(found: Delivery) -> Any:
    request = await ask(found)
    error = request.error
    if error is not None:
        return type(error), str(error), type(error.__cause__)
    return request.replies[0]


async def test_a_forgotten_script_is_sent_as_text_with_what_confirms_it() -> None:
    side = FakeSide({"a:6379": answers(NoScriptError("x"), 0, 7, 1)})

    request = await ask(delivery(side), ("WAIT", 1, 100))

    assert request.replies == [7, 1]
    assert names(side.sent("a:6379")) == ["EVALSHA", "WAIT", "EVAL", "WAIT"]
    assert side.sent("a:6379")[2][1] == SCRIPT.text


async def test_a_server_that_knows_no_scripts_at_all_is_given_up() -> None:
    side = FakeSide({"a:6379": lambda _: NoScriptError("No matching script.")})

    request = await ask(delivery(side))

    assert isinstance(request.error, BrokerError)
    assert names(side.sent("a:6379")) == ["EVALSHA", "EVAL"]


@pytest.mark.parametrize("url", ["redis://a", SENTINELS, "redis+cluster://a"])
@pytest.mark.parametrize("error", [LateError("late"), AwayError("cut")])
async def test_a_lost_reply_is_not_sent_for_again(url: str, error: Any) -> None:
    named = {"evalsha": lost(error), "cluster": slots_of((0, 16383, "a"))}
    sentinel = lambda _: [b"a", b"6379"]
    side = FakeSide(
        {
            "a:6379": lambda words: named[str(words[0]).lower()],
            "s1:26379": sentinel,
            "s2:26379": sentinel,
        }
    )

    request = await ask(delivery(side, url))

    assert isinstance(request.error, BrokerUnavailableError)
    assert names(side.sent("a:6379")).count("EVALSHA") == 1


async def test_a_replica_without_another_server_is_not_asked_twice() -> None:
    side = FakeSide({"a:6379": answers(ReadOnlyError("x"))})

    request = await ask(delivery(side))

    assert isinstance(request.error, BrokerUnavailableError)
    assert side.opened[0].left == 1, "the address may lead elsewhere by now"


async def test_a_wrong_password_is_tried_once_and_one_from_a_file_twice() -> None:
    for url, times in (("redis://:p@a", 1), ("redis://a?password_file=/run/p", 2)):
        side = FakeSide({"a:6379": answers()})
        side.away["a:6379"] = AuthenticationError("invalid username-password pair")

        request = await ask(delivery(side, url))

        assert isinstance(request.error, BrokerRefusedError)
        assert side.opened[0].left == times


async def test_what_never_went_out_goes_to_the_new_primary() -> None:
    primary = [b"a", b"6379"]
    side = FakeSide(
        {
            "a:6379": answers(1),
            "b:6379": answers(2),
            "s1:26379": lambda _: primary,
            "s2:26379": lambda _: primary,
        }
    )
    found = delivery(side, SENTINELS)
    assert (await ask(found)).replies == [1]

    side.away["a:6379"] = AwayError("refused")
    gone = await ask(found)
    assert isinstance(gone.error, BrokerUnavailableError)
    assert "a:6379" in str(gone.error)
    primary = [b"b", b"6379"]
    assert (await ask(found)).replies == [2]

    assert names(side.sent("a:6379")) == ["EVALSHA"]
    assert next(each for each in side.opened if each.place == "a:6379").is_closed


async def test_a_demoted_primary_did_nothing_so_the_new_one_is_asked() -> None:
    primaries = iter([[b"a", b"6379"], [b"b", b"6379"]])
    sentinel = lambda _: next(primaries)
    side = FakeSide(
        {
            "a:6379": answers(ReadOnlyError("x")),
            "b:6379": answers(2),
            "s1:26379": sentinel,
            "s2:26379": sentinel,
        }
    )

    assert (await ask(delivery(side, SENTINELS))).replies == [2]


async def test_a_replica_that_sentinels_hold_for_the_primary_is_not_written_to() -> None:
    sentinel = lambda _: [b"a", b"6379"]
    side = FakeSide({"a:6379": answers(), "s1:26379": sentinel, "s2:26379": sentinel})
    side.info["a:6379"] = {"redis_version": "7.0.0", "role": "slave"}

    request = await ask(delivery(side, SENTINELS))

    assert isinstance(request.error, BrokerUnavailableError)
    assert side.sent("a:6379") == []


async def test_a_moved_key_is_followed_and_the_map_drawn_anew_where_it_is() -> None:
    old = slots_of((0, 16383, "a"))
    side = FakeSide(
        {
            "a:6379": lambda words: old if words[0] == "CLUSTER" else MovedError("12 b:6379"),
            "b:6379": lambda words: slots_of((0, 16383, "b")) if words[0] == "CLUSTER" else 5,
        }
    )
    found = delivery(side, "redis+cluster://a")

    assert (await ask(found)).replies == [5]
    assert (await ask(found)).replies == [5]

    assert names(side.sent("a:6379")) == ["CLUSTER", "EVALSHA"]
    assert names(side.sent("b:6379")) == ["CLUSTER", "EVALSHA", "EVALSHA"]


async def test_servers_that_point_at_each_other_are_given_up() -> None:
    def pointing(at: str) -> Answer:
        every = slots_of((0, 16383, "a"))
        return lambda words: every if words[0] == "CLUSTER" else MovedError(f"1 {at}:6379")

    side = FakeSide({"a:6379": pointing("b"), "b:6379": pointing("a")})

    request = await ask(delivery(side, "redis+cluster://a"))

    assert isinstance(request.error, BrokerUnavailableError)
    sent = names(side.sent("a:6379")) + names(side.sent("b:6379"))
    assert sent.count("EVALSHA") == MOST_SENDS


async def test_a_key_on_its_way_is_asked_for_at_its_destination_alone() -> None:
    side = FakeSide(
        {
            "a:6379": lambda words: (
                slots_of((0, 16383, "a")) if words[0] == "CLUSTER" else AskError("1 b:6379")
            ),
            "b:6379": answers("OK", NoScriptError("x"), "OK", 9),
        }
    )
    found = delivery(side, "redis+cluster://a")

    assert (await ask(found)).replies == [9]

    assert names(side.sent("b:6379")) == ["ASKING", "EVALSHA", "ASKING", "EVAL"]
    side.answers["b:6379"] = answers("OK", 9)
    await ask(found)
    assert names(side.sent("a:6379")).count("EVALSHA") == 2, "it may still be at its source"


async def test_nobody_is_asked_once_per_request() -> None:
    side = FakeSide({})
    side.away = {"a:6379": AwayError("refused"), "b:6379": AwayError("refused")}
    requests = [Request(f"tw1:{{shop/q{number}}}:term", CALL) for number in range(50)]

    await delivery(side, "redis+cluster://a,b").deliver(requests)

    assert [each.place for each in side.opened for _ in range(each.tried)] == ["a:6379", "b:6379"]
    assert {type(request.error) for request in requests} == {BrokerUnavailableError}


async def test_a_single_server_that_points_elsewhere_is_refused_with_the_remedy() -> None:
    for error in (MovedError("1 b:6379"), AskError("1 b:6379")):
        request = await ask(delivery(FakeSide({"a:6379": answers(error)})))

        assert isinstance(request.error, BrokerRefusedError)
        assert "redis+cluster://" in str(request.error)


async def test_a_server_in_trouble_fails_its_own_requests_only() -> None:
    halves = slots_of((0, 8191, "a"), (8192, 16383, "b"))
    side = FakeSide(
        {
            "a:6379": lambda words: halves if words[0] == "CLUSTER" else words[3],
            "b:6379": lambda _: lost(LateError("late")),
        }
    )
    keys = [f"tw1:{{shop/q{number}}}:term" for number in range(20)]
    requests = [Request(key, Call(SCRIPT, (key,), ())) for key in keys]

    await delivery(side, "redis+cluster://a").deliver(requests)

    done = [request for request in requests if request.error is None]
    assert [request.replies for request in done] == [[request.key] for request in done]
    assert 0 < len(done) < 20
    lost_ones = [request.error for request in requests if request not in done]
    assert {type(error) for error in lost_ones} == {BrokerUnavailableError}
    assert len(side.sent("b:6379")) == 1, "in one go, whose first reply did not come"


@pytest.mark.parametrize(
    ("error", "wanted", "text"),
    [
        (lost(BusyLoadingError("x")), BrokerUnavailableError, "is still loading its data"),
        (ClusterDownError("The cluster is down"), BrokerUnavailableError, "try again"),
        (ResponseError("UNBLOCKED force unblock"), BrokerUnavailableError, "try again"),
        (ResponseError("NOREPLICAS Not enough"), BrokerUnavailableError, "min-replicas-to-write"),
        (ResponseError("ERR syntax"), BrokerError, "answered: ERR syntax"),
    ],
)
async def test_errors_are_told_apart(error: Any, wanted: type[BrokerError], text: str) -> None:
    request = await ask(delivery(FakeSide({"a:6379": lambda _: error})))

    assert type(request.error) is wanted
    assert text in str(request.error)
    assert request.error is not None
    assert request.error.__cause__ is not None


async def test_a_server_that_is_too_old_is_refused_before_anything_is_sent() -> None:
    side = FakeSide({"a:6379": answers()})
    side.info["a:6379"] = {"redis_version": "6.2.14", "role": "master"}

    request = await ask(delivery(side))

    assert isinstance(request.error, BrokerRefusedError)
    assert "a:6379 is version 6.2.14; Tidework needs Redis 7.0" in str(request.error)
    assert side.sent("a:6379") == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("BUSY Redis is busy running a script.", "is busy with a script of somebody else"),
        ("MISCONF Errors writing to the AOF file", "cannot write to its disk"),
        ("NOREPLICAS Not enough good replicas to write.", "has fewer replicas than"),
    ],
)
async def test_what_passes_by_itself_is_worth_another_try(answer: str, told: str) -> None:
    side = FakeSide({"a:6379": answers(ResponseError(answer), 7)})
    found = delivery(side)

    with pytest.raises(BrokerUnavailableError, match=told):
        await found.ask(KEY, CALL)

    assert await found.ask(KEY, CALL) == 7


async def test_an_answer_that_nobody_expects_is_told_as_it_is() -> None:
    side = FakeSide({"a:6379": answers(ResponseError("ERR what is this"))})

    with pytest.raises(BrokerError, match="answered: ERR what is this") as caught:
        await delivery(side).ask(KEY, CALL)

    assert type(caught.value) is BrokerError
