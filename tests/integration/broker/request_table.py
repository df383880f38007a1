"""Every request that changes a queue, in rows: a new script gets one here."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.broker.request_crontasks import CRONTASKS
from tests.integration.broker.request_documents import DOCUMENTS
from tests.integration.broker.request_once import BLOCKS
from tests.integration.broker.request_progress import NOTES
from tests.integration.broker.request_steps import (
    ACT,
    BROKEN,
    SETTLED,
    act_after,
    announce_next,
    announce_others,
    answer,
    ask,
    ask_and_answer,
    be_unknown,
    beat,
    cancel,
    claim_all,
    cordon_and_ask,
    cordon_old,
    end_run,
    given,
    hold_run,
    lead,
    leave,
    refuse_document,
    run_and_forget,
    run_and_take_key,
    start_run,
    start_unique,
    take_marker,
    unique,
    upkeep,
    whole,
)
from tests.integration.broker.rig import FAR, MINUTE, TERM, Row, job
from tidework.model.durability import Durability
from tidework.model.lease import ExchangeRequest, RunTimes
from tidework.model.scaled import Scaled
from tidework.model.unique import OnConflict

SCALED = Scaled(0, 1, 1, "1 waiting")

JOBS = [
    Row(
        "enqueue",
        "due at once, due later, known",
        lambda rig, broker: broker.enqueue(
            rig.queue, [job("new1", priority=0), job("new2", available_at=FAR), job("ready1")]
        ),
        newer=run_and_forget,
    ),
    Row(
        "enqueue",
        "a job that takes a unique key",
        lambda rig, broker: broker.enqueue(rig.queue, [unique("new1")]),
        newer=run_and_take_key,
    ),
    Row(
        "enqueue",
        "a job whose unique key is held",
        lambda rig, broker: broker.enqueue(rig.queue, [unique("new2")]),
        before=lambda rig: rig.put(unique("new1")),
        unseen=True,
        alike=whole,
    ),
    Row(
        "enqueue",
        "a job that replaces another",
        lambda rig, broker: broker.enqueue(rig.queue, [unique("new2", OnConflict.REPLACE)]),
        before=lambda rig: rig.put(unique("new1")),
        newer=lambda rig: rig.put(unique("new3", OnConflict.REPLACE)),
    ),
    Row(
        "enqueue",
        "a job that waits for the one it replaces",
        lambda rig, broker: broker.enqueue(rig.queue, [unique("new2", OnConflict.REPLACE)]),
        before=start_unique,
        newer=lambda rig: rig.end("w", 2, "new1", of=1),
    ),
    Row(
        "replay",
        "a dead letter",
        lambda rig, broker: broker.replay(rig.queue, ["dead", "done", "nobody"]),
        newer=lambda rig: rig.exchange("w", 1, 9),
    ),
    Row(
        "replay",
        "a document that was refused",
        lambda rig, broker: broker.replay(rig.queue, [rig.letter]),
        before=refuse_document,
        newer=lambda rig: rig.intake(rig.broker, BROKEN, more=1),
    ),
    Row(
        "purge",
        "what has ended and what has not",
        lambda rig, broker: broker.purge(rig.queue, ["dead", "done", "ready1", "nobody"]),
    ),
    Row("cancel", "a ready job", cancel("ready1"), newer=lambda rig: rig.prune_now()),
    Row("cancel", "a scheduled job", cancel("later")),
    Row("cancel", "a running job", cancel("c1-1000"), before=start_run, newer=end_run),
    Row("cancel", "a run that is held", cancel("c1-1001"), before=hold_run, newer=end_run),
    Row(
        "delete_job",
        "a job that waits",
        lambda rig, broker: broker.delete(rig.queue, "later"),
        newer=lambda rig: rig.exchange("w", 1, 9),
    ),
    Row(
        "promote_job",
        "one that was to wait",
        lambda rig, broker: broker.promote(rig.queue, "later"),
        newer=lambda rig: rig.exchange("w", 1, 9),
    ),
    Row(
        "promote",
        "a due job",
        upkeep,
        before=lambda rig: rig.let_come_due("later"),
        newer=lambda rig: rig.exchange("w", 1, 9),
    ),
    Row(
        "reap",
        "a dead worker's job",
        upkeep,
        before=lambda rig: rig.let_leases_end(),
        newer=lambda rig: rig.exchange("w", 1, 9),
    ),
    Row(
        "prune",
        "what ended long ago",
        upkeep,
        before=lambda rig: rig.let_retention_end(),
        newer=lambda rig: rig.put(job("done")),
    ),
]

WORKERS = [
    Row(
        "exchange",
        "claims",
        lambda rig, broker: broker.exchange(rig.queue, ExchangeRequest("w", 1, 2)),
        newer=lambda rig: rig.end("w", 2, "ready1", of=1),
        alike=given,
    ),
    Row(
        "exchange",
        "settles in every way, claims, and has measured",
        lambda rig, broker: broker.exchange(
            rig.queue, ExchangeRequest("w", 2, 2, SETTLED, served={"t": RunTimes(2, 0.5, {16: 2})})
        ),
        before=claim_all,
        newer=lambda rig: rig.exchange("w", 3, 9),
        alike=given,
    ),
    Row(
        "exchange",
        "removes the marker that woke it",
        lambda rig, broker: broker.exchange(rig.queue, ExchangeRequest("w", 1, 0, woken=True)),
        before=take_marker,
        newer=take_marker,
    ),
    Row(
        "renew",
        "a lease that is held and one that is not",
        lambda rig, broker: broker.renew(rig.queue, "w", [("s1", "w:1"), ("done", "w:1")]),
        before=claim_all,
        newer=lambda rig: rig.end("w", 2, "s1", of=1),
        unseen=True,
        alike=lambda reply: (reply.lost, reply.cancel),
    ),
    Row(
        "stranded",
        "looks, and removes markers",
        lambda rig, broker: broker.stranded(rig.queue, 9),
        before=take_marker,
    ),
    Row(
        "beat",
        "before another",
        beat,
        newer=lambda rig: rig.beat("w", busy=2),
        heal=lambda rig: rig.beat("w", busy=2),
        reason="the next beat says it anew",
    ),
    Row("beat", "before the end", beat, newer=lambda rig: rig.broker.leave(rig.queue, "w")),
    Row(
        "beat",
        "with its stacks",
        lambda rig, broker: answer(rig, broker, 1),
        before=ask,
        newer=ask_and_answer,
        heal=lambda rig: rig.beat("old", busy=0),
        reason="the next beat says it anew",
    ),
    Row(
        "announce",
        "a task that was unknown",
        lambda rig, broker: broker.announce(rig.queue, "v2", ["t"]),
        before=be_unknown,
        newer=announce_others,
        heal=announce_next,
        reason="a worker of the next version says it again within the hour; until then one is kept "
        "for a look, if jobs of unknown tasks wait",
    ),
    Row(
        "leave",
        "in order",
        lambda rig, broker: broker.leave(rig.queue, "old"),
        before=cordon_and_ask,
    ),
]

PEOPLE = [
    Row(
        "cordon",
        "who undid it since",
        cordon_old,
        newer=lambda rig: rig.broker.uncordon(rig.queue, "old"),
        heal=lambda rig: rig.broker.uncordon(rig.queue, "old"),
        reason="who undid it sees that the worker is cordoned",
    ),
    Row("cordon", "whose worker left since", cordon_old, newer=leave),
    Row(
        "uncordon",
        "who cordoned it again since",
        lambda rig, broker: broker.uncordon(rig.queue, "old"),
        before=lambda rig: cordon_old(rig, rig.broker),
        newer=lambda rig: cordon_old(rig, rig.broker),
        heal=lambda rig: cordon_old(rig, rig.broker),
        reason="who cordoned it sees that the worker is not",
    ),
    Row(
        "ask_stacks",
        "who was answered since",
        lambda rig, broker: broker.ask_stacks(rig.queue, "old"),
        newer=lambda rig: answer(rig, rig.broker, 1),
        skips=frozenset({"stack_requests"}),
        alike=whole,
        reason="the worker tells its stacks once more, and nobody looks",
    ),
    Row(
        "ask_stacks",
        "whose worker left since",
        lambda rig, broker: broker.ask_stacks(rig.queue, "old"),
        newer=leave,
    ),
]

LEADERS = [
    Row(
        "open_queue",
        "for the first time",
        lambda rig, broker: broker.open_queue(rig.queue),
        before=lambda rig: rig.forget("meta"),
    ),
    Row(
        "register",
        "a queue that nobody has heard of",
        lambda rig, broker: broker.open_queue(rig.queue),
        before=lambda rig: rig.be_unknown(),
    ),
    Row(
        "configure",
        "its durability",
        lambda rig, broker: broker.configure(rig.queue, TERM, Durability.REPLICA),
        newer=lambda rig: rig.broker.configure(rig.queue, TERM, Durability.FSYNC),
    ),
    Row(
        "note_scaling",
        "a step, and one more since",
        lambda rig, broker: broker.note_scaling(rig.queue, TERM, SCALED, is_step=True),
        newer=lambda rig: rig.broker.note_scaling(
            rig.queue, TERM, replace(SCALED, before=1, replicas=2), is_step=True
        ),
    ),
    Row(
        "pause",
        "by a person who resumed it since",
        lambda rig, broker: broker.pause(rig.queue, "repairs"),
        newer=lambda rig: rig.broker.resume(rig.queue),
        heal=lambda rig: rig.broker.resume(rig.queue),
        reason="who resumed it sees that it is paused, and why",
    ),
    Row(
        "resume",
        "by a person who paused it since",
        lambda rig, broker: broker.resume(rig.queue),
        before=lambda rig: rig.broker.pause(rig.queue, "repairs"),
        newer=lambda rig: rig.broker.pause(rig.queue, "more repairs"),
        heal=lambda rig: rig.broker.pause(rig.queue, "more repairs"),
        skips=frozenset({"meta"}),
        reason="who paused it sees that it is not paused",
    ),
    Row(
        "take_term",
        "over the head of a leader",
        lambda rig, broker: broker.take_term(rig.queue),
        skips=frozenset({"term"}),
        reason="a number that is skipped leads nobody, and whoever is refused raises it again",
    ),
    Row(
        "lead",
        "stays in the lead",
        lead,
        before=lambda rig: rig.forget("leader"),
        newer=lambda rig: lead(rig, rig.broker),
    ),
    Row(
        "lead",
        "has resigned since",
        lead,
        before=lambda rig: rig.forget("leader"),
        newer=lambda rig: rig.broker.resign(rig.queue, "next"),
        heal=lambda rig: rig.forget("leader"),
        skips=frozenset({"term"}),
        reason="it expires by itself, and its term leads nobody",
    ),
    Row("resign", "for good", lambda rig, broker: broker.resign(rig.queue, "boss")),
    Row(
        "drain",
        "one of two workers",
        lambda rig, broker: broker.drain(rig.queue, TERM, ["old", "w"], 1, ttl=MINUTE),
        before=lambda rig: rig.beat("w", busy=0),
        newer=lambda rig: rig.broker.drain(rig.queue, TERM, [], 0, ttl=MINUTE),
        alike=whole,
    ),
]

ACTS = [
    Row(
        "note_act",
        "another one since",
        lambda rig, broker: broker.note_act(rig.queue.namespace, ACT),
        newer=act_after,
    ),
]

ROWS = [*JOBS, *DOCUMENTS, *WORKERS, *BLOCKS, *NOTES, *PEOPLE, *LEADERS, *CRONTASKS, *ACTS]
