"""The roster: what is told of workers, who is meant by a name, and who gives no answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidework.broker.answers import CordonAnswer, UncordonAnswer
from tidework.clock import ManualClock
from tidework.errors import NoAnswerError, WorkerNotFoundError
from tidework.model.backlog import Presence, StacksAnswer
from tidework.model.identity import QueueName
from tidework.roster import Roster, WorkerState, in_words
from tidework.testing.memory.broker import MemoryBroker

ONE, TWO = QueueName("shop", "one"), QueueName("shop", "two")
TTL = timedelta(minutes=5)
ANSWERS = {"answers": ["stacks"]}


class Fleet:
    """A memory broker whose time the test moves, and workers that beat when it says so."""

    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.broker = MemoryBroker(self.clock)
        self.roster = Roster(self.broker, (ONE, TWO))
        self.slept = 0

    async def beat(
        self,
        worker: str,
        *queues: QueueName,
        document: Mapping[str, Any] = ANSWERS,
        stacks: StacksAnswer | None = None,
    ) -> None:
        presence = Presence(worker, self.clock.now(), document)
        for queue in queues or (ONE,):
            await self.broker.beat(queue, presence, ttl=TTL, stacks=stacks)

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.clock.advance(timedelta(seconds=seconds))

    async def state(self, worker: str = "w.1") -> WorkerState:
        return (await self.roster.find(worker)).state


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


async def test_a_worker_of_two_queues_is_one_worker(fleet: Fleet) -> None:
    await fleet.beat("b.1", TWO)
    await fleet.beat("a.1", ONE, TWO)

    entries = await fleet.roster.entries()

    assert [(e.incarnation, e.name, e.queues) for e in entries] == [
        ("a.1", "a", (ONE, TWO)),
        ("b.1", "b", (TWO,)),
    ]


async def test_states_from_the_mildest_to_the_worst(fleet: Fleet) -> None:
    await fleet.beat("w.1", document={"paused": False})
    assert await fleet.state() is WorkerState.WORKING
    await fleet.beat("w.1", document={"paused": True})
    assert await fleet.state() is WorkerState.PAUSED
    await fleet.broker.drain(ONE, 1, ["w.1"], 1, ttl=timedelta(minutes=2))
    assert await fleet.state() is WorkerState.CORDONED
    assert "the autoscaler" in (await fleet.roster.find("w.1")).remark
    await fleet.broker.cordon(ONE, "w.1")
    assert "a person and the autoscaler" in (await fleet.roster.find("w.1")).remark
    await fleet.beat("w.1", document={"draining": True})
    assert await fleet.state() is WorkerState.DRAINING
    fleet.clock.advance(timedelta(seconds=29))
    assert await fleet.state() is WorkerState.DRAINING
    fleet.clock.advance(timedelta(seconds=61))
    assert await fleet.state() is WorkerState.STALE
    assert "not seen for 90 s" in (await fleet.roster.find("w.1")).remark


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (119, "119 s"), (150, "2 min"), (7300, "2 h")]
)
def test_spans_in_words(seconds: float, words: str) -> None:
    assert in_words(timedelta(seconds=seconds)) == words


async def test_a_name_means_the_one_that_lives(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    fleet.clock.advance(timedelta(seconds=31))
    assert (await fleet.roster.find("w")).incarnation == "w.1", "there is no other"
    await fleet.beat("w.2")
    assert (await fleet.roster.find("w")).incarnation == "w.2"
    assert (await fleet.roster.find("w.1")).incarnation == "w.1"
    await fleet.beat("w.3")
    with pytest.raises(WorkerNotFoundError, match=r"several.*w\.2, w\.3"):
        await fleet.roster.find("w")
    with pytest.raises(WorkerNotFoundError, match=r"no worker 'x'.*w\.1, w\.2, w\.3"):
        await fleet.roster.find("x")


async def test_a_cordon_holds_in_every_queue(fleet: Fleet) -> None:
    await fleet.beat("w.1", ONE, TWO)
    entry = await fleet.roster.find("w")

    assert await fleet.roster.cordon(entry) == CordonAnswer(0, before=False)
    for queue in (ONE, TWO):
        assert (await fleet.broker.renew(queue, "w.1", [])).cordoned
    await fleet.broker.uncordon(TWO, "w.1")
    assert await fleet.roster.cordon(entry) == CordonAnswer(0, before=False)
    assert await fleet.roster.cordon(entry) == CordonAnswer(0, before=True)
    assert await fleet.roster.uncordon(entry) == UncordonAnswer(undone=True, still=False)
    for queue in (ONE, TWO):
        assert not (await fleet.broker.renew(queue, "w.1", [])).cordoned


async def test_a_worker_that_left_in_the_meantime_is_not_cordoned(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    entry = await fleet.roster.find("w")
    await fleet.broker.leave(ONE, "w.1")
    with pytest.raises(WorkerNotFoundError):
        await fleet.roster.cordon(entry)
    with pytest.raises(WorkerNotFoundError):
        await fleet.roster.stacks(entry, 10, fleet.sleep)


async def test_stacks_come_with_a_later_beat(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    entry = await fleet.roster.find("w")

    async def sleep(seconds: float) -> None:
        await fleet.sleep(seconds)
        if fleet.slept == 3:
            await fleet.beat("w.1", stacks=StacksAnswer(1, {"processes": []}))

    answer = await fleet.roster.stacks(entry, 10, sleep)

    assert answer == StacksAnswer(1, {"processes": []})
    assert fleet.slept == 3


async def test_an_earlier_answer_is_not_taken_for_ours(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    await fleet.broker.ask_stacks(ONE, "w.1")
    await fleet.beat("w.1", stacks=StacksAnswer(1, {"n": 1}))
    entry = await fleet.roster.find("w")
    with pytest.raises(NoAnswerError, match="no answer came within 1 s"):
        await fleet.roster.stacks(entry, 1, fleet.sleep)


async def test_two_who_ask_at_once_get_the_same_answer(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    entry = await fleet.roster.find("w")
    answers = []

    async def second(_seconds: float) -> None:
        await fleet.beat("w.1", stacks=StacksAnswer(1, {"n": 1}))

    async def first(_seconds: float) -> None:
        answers.append(await fleet.roster.stacks(entry, 1, second))

    answers.append(await fleet.roster.stacks(entry, 1, first))

    assert answers == [StacksAnswer(1, {"n": 1})] * 2


@pytest.mark.parametrize("answers", [{}, {"answers": None}, {"answers": []}, {"answers": 7}])
async def test_a_version_that_does_not_know_the_request_is_not_waited_for(
    fleet: Fleet, answers: Mapping[str, Any]
) -> None:
    await fleet.beat("w.1", document={"version": "0.0.9", **answers})
    entry = await fleet.roster.find("w")
    with pytest.raises(NoAnswerError, match=r"0\.0\.9.*does not know"):
        await fleet.roster.stacks(entry, 10, fleet.sleep)
    assert fleet.slept == 0
    assert not (await fleet.broker.renew(ONE, "w.1", [])).stacks_asked


async def test_a_stale_worker_is_not_waited_for(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    fleet.clock.advance(timedelta(seconds=40))
    entry = await fleet.roster.find("w")
    with pytest.raises(NoAnswerError, match="not seen for 40 s"):
        await fleet.roster.stacks(entry, 10, fleet.sleep)
    assert fleet.slept == 0


async def test_a_worker_that_ends_or_freezes_while_it_is_asked(fleet: Fleet) -> None:
    await fleet.beat("w.1")
    entry = await fleet.roster.find("w")
    with pytest.raises(NoAnswerError, match="last seen 10 s ago"):
        await fleet.roster.stacks(entry, 10, fleet.sleep)

    async def leave(_seconds: float) -> None:
        await fleet.broker.leave(ONE, "w.1")

    with pytest.raises(NoAnswerError, match="ended meanwhile"):
        await fleet.roster.stacks(entry, 1, leave)
