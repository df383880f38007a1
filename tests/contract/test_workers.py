"""What people ask of workers: who is there, claim nothing more, show your stacks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.contract.conftest import Kit
from tidework.broker.answers import CordonAnswer, UncordonAnswer
from tidework.broker.documents import MARKER
from tidework.model.backlog import STALE_AFTER, Cordon, Presence, StacksAnswer
from tidework.model.job import Job
from tidework.model.lease import CordonedWorker

SEEN = datetime(2026, 1, 1, tzinfo=UTC)
LONG = timedelta(minutes=5)


async def beat(kit: Kit, worker: str = "w1", answer: StacksAnswer | None = None) -> int:
    presence = Presence(worker, SEEN, {"slots": 1})
    return await kit.broker.beat(kit.queue, presence, ttl=LONG, stacks=answer)


async def by_whom(kit: Kit, worker: str = "w1") -> Cordon:
    found = {p.incarnation: p.cordon for p in await kit.broker.workers(kit.queue)}
    return found[worker]


async def drain(kit: Kit, *workers: str, count: int | None = None) -> list[CordonedWorker]:
    ttl, most = timedelta(seconds=30), len(workers) if count is None else count
    return list(await kit.broker.drain(kit.queue, 1, workers, most, ttl=ttl))


async def test_a_worker_says_how_long_it_has_been_silent(kit: Kit) -> None:
    await beat(kit)
    (now,) = await kit.broker.workers(kit.queue)
    await kit.let_pass(timedelta(milliseconds=50))
    (later,) = await kit.broker.workers(kit.queue)
    assert later.seen_at == now.seen_at
    assert later.silent_for >= timedelta(milliseconds=50)
    assert not later.is_stale
    assert Presence("w1", SEEN, silent_for=STALE_AFTER).is_stale


async def test_a_person_cordons_a_worker_until_it_is_undone(kit: Kit) -> None:
    await beat(kit)
    await kit.put(*(Job(name, "t", {}) for name in "abc"))
    await kit.exchange(want=1, worker="w1")
    assert await kit.broker.cordon(kit.queue, "w1") == CordonAnswer(1, before=False)
    assert await kit.broker.cordon(kit.queue, "w1") == CordonAnswer(1, before=True)
    assert await by_whom(kit) is Cordon.PERSON
    reply = await kit.exchange(want=1, worker="w1")
    assert (reply.claimed, reply.cordoned) == ((), True)
    assert (await kit.broker.renew(kit.queue, "w1", [])).cordoned
    assert len((await kit.exchange(want=1, worker="w2")).claimed) == 1

    undone = await kit.broker.uncordon(kit.queue, "w1")

    assert undone == UncordonAnswer(undone=True, still=False)
    assert await by_whom(kit) is Cordon.NOBODY
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER
    assert len((await kit.exchange(want=1, worker="w1", woken=True)).claimed) == 1
    again = await kit.broker.uncordon(kit.queue, "w1")
    assert again == UncordonAnswer(undone=False, still=False)


async def test_the_autoscaler_does_not_undo_what_a_person_did(kit: Kit) -> None:
    await beat(kit)
    await kit.broker.cordon(kit.queue, "w1")
    await kit.put(Job("a", "t", {}))
    for candidates in ((), ("w2",)):
        await drain(kit, *candidates)
        assert (await kit.exchange(want=1, worker="w1")).claimed == ()
    assert await by_whom(kit) is Cordon.PERSON


async def test_a_person_does_not_undo_what_the_autoscaler_did(kit: Kit) -> None:
    await beat(kit)
    await kit.broker.cordon(kit.queue, "w1")
    assert await drain(kit, "w1") == [CordonedWorker("w1", 0)]
    assert await by_whom(kit) is Cordon.PERSON | Cordon.AUTOSCALER

    undone = await kit.broker.uncordon(kit.queue, "w1")

    assert undone == UncordonAnswer(undone=True, still=True)
    assert (await kit.exchange(want=1, worker="w1")).cordoned
    await drain(kit)
    assert not (await kit.exchange(want=1, worker="w1")).cordoned


async def test_whom_a_person_cordoned_the_autoscaler_takes_first(kit: Kit) -> None:
    await beat(kit)
    await kit.put(Job("a", "t", {}))
    await kit.exchange(want=1, worker="w1")
    await kit.broker.cordon(kit.queue, "w1")
    assert await drain(kit, "w0", "w1", "w2", count=1) == [CordonedWorker("w1", 1)]


async def test_nobody_cordons_or_asks_a_worker_that_is_not_there(kit: Kit) -> None:
    await beat(kit)
    await kit.broker.leave(kit.queue, "w1")
    for worker in ("w1", "nobody"):
        assert await kit.broker.cordon(kit.queue, worker) is None
        assert await kit.broker.ask_stacks(kit.queue, worker) is None
        assert await kit.broker.stacks(kit.queue, worker) is None


async def test_who_left_is_not_cordoned_and_has_no_stacks(kit: Kit) -> None:
    await beat(kit)
    await kit.broker.cordon(kit.queue, "w1")
    await kit.broker.ask_stacks(kit.queue, "w1")
    await beat(kit, answer=StacksAnswer(1, {}))
    await kit.broker.ask_stacks(kit.queue, "w1")

    await kit.broker.leave(kit.queue, "w1")

    assert not (await kit.exchange(worker="w1")).cordoned
    assert await kit.broker.stacks(kit.queue, "w1") is None
    assert not (await kit.broker.renew(kit.queue, "w1", [])).stacks_asked


async def test_the_end_of_a_cordon_wakes_somebody(kit: Kit) -> None:
    await beat(kit)
    await kit.broker.cordon(kit.queue, "w1")
    await kit.put(Job("a", "t", {}))
    # A marker that somebody took and died with.
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER

    await kit.broker.uncordon(kit.queue, "w1")

    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == MARKER


async def test_nothing_stays_of_a_cordoned_worker_that_left_or_died(kit: Kit) -> None:
    for worker in ("w1", "w2"):
        await beat(kit, worker)
        await kit.broker.cordon(kit.queue, worker)
        await kit.broker.ask_stacks(kit.queue, worker)
    await kit.broker.leave(kit.queue, "w1")
    await kit.let_pass(timedelta(milliseconds=300))
    ttl = timedelta(milliseconds=200)
    await kit.broker.beat(kit.queue, Presence("w3", SEEN), ttl=ttl)
    assert [p.incarnation for p in await kit.broker.workers(kit.queue)] == ["w3"]
    for worker in ("w1", "w2"):
        assert not (await kit.exchange(worker=worker)).cordoned


async def test_stacks_are_asked_for_and_told(kit: Kit) -> None:
    assert await beat(kit) == 0
    assert not (await kit.broker.renew(kit.queue, "w1", [])).stacks_asked
    number = await kit.broker.ask_stacks(kit.queue, "w1")
    assert number == 1
    assert (await kit.broker.renew(kit.queue, "w1", [])).stacks_asked
    assert not (await kit.broker.renew(kit.queue, "w2", [])).stacks_asked
    assert await beat(kit) == 1
    assert await kit.broker.stacks(kit.queue, "w1") is None

    answer = StacksAnswer(1, {"processes": ["a stack"]})
    assert await beat(kit, answer=answer) == 0

    assert await kit.broker.stacks(kit.queue, "w1") == answer
    assert not (await kit.broker.renew(kit.queue, "w1", [])).stacks_asked
    assert await beat(kit) == 0
    assert await kit.broker.stacks(kit.queue, "w1") == answer


async def test_two_who_ask_at_once_get_one_answer(kit: Kit) -> None:
    await beat(kit)
    assert await kit.broker.ask_stacks(kit.queue, "w1") == 1
    assert await kit.broker.ask_stacks(kit.queue, "w1") == 1
    await beat(kit, answer=StacksAnswer(1, {"n": 1}))
    assert await kit.broker.ask_stacks(kit.queue, "w1") == 2
    assert await kit.broker.stacks(kit.queue, "w1") == StacksAnswer(1, {"n": 1})
    await beat(kit, answer=StacksAnswer(2, {"n": 2}))
    assert await kit.broker.stacks(kit.queue, "w1") == StacksAnswer(2, {"n": 2})


async def test_an_answer_that_nobody_asked_for_or_that_comes_late_is_dropped(kit: Kit) -> None:
    await beat(kit, answer=StacksAnswer(1, {}))
    assert await kit.broker.stacks(kit.queue, "w1") is None
    await kit.broker.ask_stacks(kit.queue, "w1")
    await beat(kit, answer=StacksAnswer(2, {}))
    assert await kit.broker.stacks(kit.queue, "w1") is None
    await beat(kit, answer=StacksAnswer(1, {"n": 1}))
    await beat(kit, answer=StacksAnswer(1, {"n": 2}))
    assert await kit.broker.stacks(kit.queue, "w1") == StacksAnswer(1, {"n": 1})


async def test_an_exchange_that_claims_nothing_tells_that_stacks_are_asked_for(kit: Kit) -> None:
    await beat(kit)
    await beat(kit, "w2")
    assert not (await kit.exchange(want=1, worker="w1")).stacks_asked
    await kit.broker.ask_stacks(kit.queue, "w1")
    assert (await kit.exchange(want=1, worker="w1")).stacks_asked
    assert (await kit.exchange(want=1, worker="w1")).stacks_asked, "until it is answered"
    assert not (await kit.exchange(want=1, worker="w2")).stacks_asked

    await beat(kit, answer=StacksAnswer(1, {}))

    assert not (await kit.exchange(want=1, worker="w1")).stacks_asked


async def test_an_exchange_of_a_busy_worker_leaves_that_to_its_renewals(kit: Kit) -> None:
    await beat(kit)
    await kit.put(Job("a", "t", {}))
    await kit.broker.ask_stacks(kit.queue, "w1")
    reply = await kit.exchange(want=1, worker="w1")
    assert (len(reply.claimed), reply.stacks_asked) == (1, False)
    assert not (await kit.exchange(want=0, worker="w1")).stacks_asked
    assert (await kit.broker.renew(kit.queue, "w1", [])).stacks_asked


async def test_idle_workers_are_woken_when_one_is_asked_for_its_stacks(kit: Kit) -> None:
    workers = ("w1", "w2", "w3")
    for worker in workers:
        await beat(kit, worker)

    await kit.broker.ask_stacks(kit.queue, "w2")

    assert (await kit.broker.stats(kit.queue)).inbox == 0, "markers are no backlog"
    for _ in workers:
        found = await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5))
        assert found == MARKER
    assert (await kit.broker.stats(kit.queue)).inbox == 0
    asked = [(await kit.exchange(want=1, worker=w, woken=True)).stacks_asked for w in workers]
    assert asked == [False, True, False]
    await kit.put_document(b"{}")
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == b"{}"


async def test_of_many_workers_only_some_are_woken(kit: Kit) -> None:
    for number in range(30):
        await beat(kit, f"w{number}")
    for _ in range(3):
        await kit.broker.ask_stacks(kit.queue, "w1")
    found = [await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) for _ in range(10)]
    assert found == [MARKER] * 10
    assert (await kit.broker.stats(kit.queue)).inbox == 0
    await kit.put_document(b"{}")
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == b"{}"


async def test_documents_that_wait_are_not_mixed_with_markers(kit: Kit) -> None:
    await beat(kit)
    await kit.put_document(b"{}")
    await kit.broker.ask_stacks(kit.queue, "w1")
    assert (await kit.broker.stats(kit.queue)).inbox == 1
    assert await kit.broker.wait_for_document(kit.queue, timedelta(seconds=5)) == b"{}"
    assert await kit.broker.wait_for_document(kit.queue, timedelta(milliseconds=50)) is None
