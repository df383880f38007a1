"""A sample call of every script, as our own code makes it: what docs/wire-format/calls.json says.

A call is written down, not sent: what a server would answer does not matter here. After a change
of a script's keys, arguments or reply ``python -m tests.unit.wire_calls --write`` renews that file
and the tables of scripts in docs/wire-format.md; look at the diff.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tidework.broker.acts import Act
from tidework.broker.connection.transport import Call
from tidework.broker.documents import AcceptedDocument, Beginning, RejectedDocument
from tidework.broker.redis import leading as redis_leading
from tidework.broker.redis.redis_broker import RedisBroker
from tidework.broker.scripts import Value, load_script
from tidework.model.backlog import JobFilter, Presence, StacksAnswer
from tidework.model.durability import Durability
from tidework.model.fire import ConcurrencyPolicy, FireRequest, Verdict
from tidework.model.identity import QueueName
from tidework.model.job import Job, JobState
from tidework.model.lease import ExchangeRequest, Lease, RunTimes, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.progress import ProgressNote
from tidework.model.scaled import Scaled
from tidework.model.statistics import Step
from tidework.model.unique import OnConflict, Unique

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "wire-format" / "calls.json"
DOCUMENT = ROOT / "docs" / "wire-format.md"
SCRIPTS = ROOT / "worker" / "src" / "tidework" / "broker" / "scripts"
QUEUE = QueueName("shop", "emails")
PREFIX = "tw1:{shop/emails}:"
MINUTE = timedelta(minutes=1)
ERROR = JobError("ValueError", "no address")
LEASE = Lease("m1", "host.0a1b2c3d:1")
MAIL = Job("m1", "send", {"to": "bob"}, created_at=1.5)
LATER = Job(
    "m2",
    "send",
    {},
    priority=0,
    created_at=1.5,
    available_at=1700000000.25,
    unique=Unique("bob", on_conflict=OnConflict.REPLACE),
)
RUN = Job("c1-1700000000", "tidy", {}, created_at=1.5)
ACT = Act(
    "a1",
    datetime.fromtimestamp(1.7e9, UTC),
    "ann",
    "token",
    "operator",
    "pause_queue",
    "/queues/emails/pause",
    "a repair",
    200,
)
RAW, BAD = b'{"task":"send","id":"m3"}', b"bad"
STORED = b'{"v":1,"id":"m3","task":"send","created_at":1.5,"params":{}}'
ENDS = (
    Settlement("m1", "host.0a1b2c3d:1", Outcome.complete(b"7")),
    Settlement("m2", "host.0a1b2c3d:1", Outcome.complete()),
    Settlement("m3", "host.0a1b2c3d:1", Outcome.retry(ERROR, MINUTE)),
    Settlement("m4", "host.0a1b2c3d:1", Outcome.release(timedelta(seconds=1))),
    Settlement("m5", "host.0a1b2c3d:1", Outcome.bury(ERROR)),
    Settlement("m6", "host.0a1b2c3d:1", Outcome.loss(JobError("WorkerLost", "it died"))),
    Settlement("m7", "host.0a1b2c3d:1", Outcome.cancelled("it ended by itself")),
    Settlement(
        "m8", "host.0a1b2c3d:1", Outcome.release_unknown(timedelta(seconds=1), MINUTE, "unknown")
    ),
)


ABOUT = (
    "Calls of scripts in the queue shop/emails. keys are the parts whose keys are KEYS, in order."
)


class NotSentError(Exception):
    """The call ends here."""


class Notebook:
    """A transport that writes down what would be sent."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.opened: list[Call] = []

    async def run(self, call: Call, durability: Durability = Durability.ASYNC) -> Any:
        if call[0].name in ("open_queue", "register"):
            # They come before many another one.
            self.opened.append(call)
            return [1, 1, b""]
        self.calls.append(call)
        raise NotSentError

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        self.calls += calls
        raise NotSentError

    async def run_each(self, calls: Sequence[Call]) -> list[Any]:
        raise NotImplementedError

    async def command(self, *words: Value) -> Any:
        return None

    async def take(
        self, source: str, target: str, timeout: timedelta, then: Call | None = None
    ) -> tuple[bytes | None, Any]:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


def fire(at: int, policy: ConcurrencyPolicy, max_runs: int | None = None) -> FireRequest:
    return FireRequest("c1", "0123abcd", at, Verdict.ENQUEUED, policy, max_runs, RUN)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def exchange(broker: RedisBroker) -> Awaitable[object]:
    request = ExchangeRequest(
        "host.0a1b2c3d", 2, 4, ENDS, woken=True, served={"send": RunTimes(3, 0.75, {15: 1, 17: 2})}
    )
    return broker.exchange(QUEUE, request)


def intake(broker: RedisBroker) -> Awaitable[object]:
    job = Job("m3", "send", {}, created_at=1.5)
    accepted = [AcceptedDocument(RAW, job, STORED, named=False)]
    refused = JobError("EnvelopeError", "not valid JSON", cause="invalid")
    large = RejectedDocument(Beginning(BAD, 50_331_648), "m5", refused, "order-9")
    rejected = [RejectedDocument(BAD, "m4", refused), large]
    return broker.intake(QUEUE, accepted, rejected, more=100)


Calls = Callable[[RedisBroker], Awaitable[object]]
CALLS: Mapping[str, Calls] = {
    "open a queue": lambda b: b.open_queue(QUEUE),
    "configure it": lambda b: b.configure(QUEUE, 3, Durability.REPLICA),
    "enqueue two jobs": lambda b: b.enqueue(QUEUE, [MAIL, LATER]),
    "take in a document, refuse another, and one that is too large": intake,
    "take in more, on a full server": lambda b: b.intake(QUEUE, [], [], more=100, full=True),
    "look for stranded documents": lambda b: b.stranded(QUEUE, 100),
    "claim": lambda b: b.exchange(QUEUE, ExchangeRequest("host.0a1b2c3d", 1, 4)),
    "settle in every way, and claim": exchange,
    "renew two leases": lambda b: b.renew(
        QUEUE, "host.0a1b2c3d", [("m1", "host.0a1b2c3d:1"), ("m2", "host.0a1b2c3d:2")]
    ),
    "give a sign of life": lambda b: b.beat(
        QUEUE, Presence("host.0a1b2c3d", moment(0), {"slots": 4}), ttl=timedelta(minutes=5)
    ),
    "give a sign of life, and its stacks": lambda b: b.beat(
        QUEUE,
        Presence("host.0a1b2c3d", moment(0), {"slots": 4}),
        ttl=timedelta(minutes=5),
        stacks=StacksAnswer(3, {"processes": []}),
    ),
    "announce its tasks": lambda b: b.announce(QUEUE, "2026-01-05", ["report", "send"]),
    "leave": lambda b: b.leave(QUEUE, "host.0a1b2c3d"),
    "upkeep": lambda b: b.upkeep(QUEUE),
    "look at a job": lambda b: b.get_job(QUEUE, "m1"),
    "cancel": lambda b: b.cancel(QUEUE, "m1"),
    "delete": lambda b: b.delete(QUEUE, "m1"),
    "promote": lambda b: b.promote(QUEUE, "m1"),
    "replay two dead letters": lambda b: b.replay(QUEUE, ["m1", "m2"]),
    "purge": lambda b: b.purge(QUEUE, ["m1"]),
    "begin a block that is to be done once": lambda b: b.once_begin(QUEUE, LEASE, "charge:42"),
    "say that it is done": lambda b: b.once_end(QUEUE, LEASE, "charge:42", ttl=MINUTE),
    "say that it is not": lambda b: b.once_end(QUEUE, LEASE, "charge:42", ttl=None),
    "keep the progress of a job": lambda b: b.note_progress(
        QUEUE, [ProgressNote(*LEASE, 3, b'[40,100,"pages"]', b'{"":40}')]
    ),
    "pause": lambda b: b.pause(QUEUE, "the mail server moves"),
    "resume": lambda b: b.resume(QUEUE),
    "list ready jobs, the second page": lambda b: b.list_jobs(
        QUEUE, JobState.READY, cursor="51700000000000:m1", limit=50
    ),
    "list dead letters of a task and a time": lambda b: b.list_jobs(
        QUEUE, JobState.DEAD, JobFilter(task="send", since=moment(1), until=moment(1.7e9))
    ),
    "list dead letters of an error, the second page": lambda b: b.list_jobs(
        QUEUE, JobState.DEAD, JobFilter(error=ERROR.fingerprint), cursor="1700000000000:m1"
    ),
    "look at two jobs that hold a text": lambda b: b.get_jobs(QUEUE, ["m1", "m2"], text="é"),
    "list errors": lambda b: b.list_errors(QUEUE),
    "numbers": lambda b: b.stats(QUEUE),
    "the days of a task": lambda b: b.series(QUEUE, Step.DAY, task="send", since=moment(1.7e9)),
    "statistics of all tasks": lambda b: b.statistics(QUEUE),
    "load": lambda b: b.gather(QUEUE, horizon=MINUTE),
    "workers": lambda b: b.workers(QUEUE),
    "cordon a worker by hand": lambda b: b.cordon(QUEUE, "host.0a1b2c3d"),
    "undo that": lambda b: b.uncordon(QUEUE, "host.0a1b2c3d"),
    "ask a worker for its stacks": lambda b: b.ask_stacks(QUEUE, "host.0a1b2c3d"),
    "cordon one of two workers": lambda b: b.drain(QUEUE, 3, ["w1", "w2"], 1, ttl=MINUTE),
    "take the term": lambda b: b.take_term(QUEUE),
    "keep a decision": lambda b: b.note_scaling(
        QUEUE, 3, Scaled(0, 2, 2, "8 waiting", (), 8, 0), is_step=True
    ),
    "lead": lambda b: b.lead(QUEUE, "boss", timedelta(seconds=6)),
    "resign": lambda b: b.resign(QUEUE, "boss"),
    "mirror CronTasks": lambda b: b.put_crontasks(QUEUE, 3, {"c1": b"{}"}),
    "admit a CronTask": lambda b: b.admit_cron(QUEUE, 3, "c1", "0123abcd", 1699999999, reset=False),
    "decide two fires": lambda b: b.decide_fires(
        QUEUE,
        3,
        [
            fire(1700000000, ConcurrencyPolicy.FORBID, 10),
            FireRequest("c2", "0123abcd", 1700000000, Verdict.MISSED_DEADLINE),
        ],
    ),
    "run a CronTask by hand": lambda b: b.run_now(QUEUE, None, "c1", "n1", RUN),
    "suspend a CronTask for a while": lambda b: b.suspend_cron(
        QUEUE, "c1", by="ann", reason="a repair", until=moment(1.7e9)
    ),
    "resume it": lambda b: b.resume_cron(QUEUE, "c1"),
    "run two past instants of a CronTask": lambda b: b.backfill(
        QUEUE,
        "c1",
        {at: Job(f"c1-{at}", "send", {}, created_at=1.7e9) for at in (1600000000, 1600003600)},
        policy=ConcurrencyPolicy.ALLOW,
        note="ann: a lost day",
    ),
    "look at a CronTask": lambda b: b.cron_record(QUEUE, "c1"),
    "keep what a person did": lambda b: b.note_act("shop", ACT),
    "what people did before that": lambda b: b.acts("shop", before=7),
    "look at the history of a CronTask": lambda b: b.fires(QUEUE, "c1"),
}


async def write_down(call: Calls) -> list[dict[str, Any]]:
    """The scripts that it calls, with the parts that are KEYS, and ARGV as a server gets it."""
    notebook = Notebook()
    with suppress(NotSentError), patch.object(redis_leading, "_sequences", count(7)):
        await call(RedisBroker(notebook))
    calls = notebook.calls or notebook.opened
    return [
        {
            "script": script.name,
            "keys": [key.removeprefix(PREFIX) for key in keys],
            "argv": [_text(value) for value in argv],
        }
        for script, keys, argv in calls
    ]


def _text(value: Value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


async def write_all() -> str:
    """The file as it should be."""
    calls = [{"name": name, **call} for name in CALLS for call in await write_down(CALLS[name])]
    lines = [
        "    {"
        + ",\n     ".join(f"{json.dumps(key)}: {json.dumps(call[key])}" for key in call)
        + "}"
        for call in calls
    ]
    return f'{{\n  "about": {json.dumps(ABOUT)},\n  "calls": [\n' + ",\n".join(lines) + "\n  ]\n}\n"


def script_rows() -> list[list[str]]:
    """Name, flags, KEYS and ARGV of every script, as the document's table has them."""
    rows = []
    for name in sorted(path.stem for path in SCRIPTS.glob("*.lua")):
        script = load_script(name)
        flags = script.text.partition("\n")[0].partition("flags=")[2].replace(",", ", ")
        args = [*script.args, *(["..."] if script.open_ended else [])]
        rows.append([f"`{name}`", flags, " ".join(script.keys), " ".join(args)])
    return rows


def reply_rows() -> list[list[str]]:
    """Name and parts of every script with a long reply, as the document's table has them."""
    scripts = [load_script(path.stem) for path in sorted(SCRIPTS.glob("*.lua"))]
    return [[f"`{each.name}`", " ".join(each.reply)] for each in scripts if each.reply]


def write_tables(text: str) -> str:
    """The document with its tables as they should be."""
    text = _write_table(text, ["script", "flags", "KEYS", "ARGV"], script_rows())
    return _write_table(text, ["script", "parts"], reply_rows())


def _write_table(text: str, titles: list[str], rows: list[list[str]]) -> str:
    head = f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}\n"
    before, _, rest = text.partition(head)
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    _, _, after = f"\n{rest}".partition("\n\n")
    return f"{before}{head}{table}\n{after}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.unit.wire_calls --write")
    FILE.write_text(asyncio.run(write_all()))
    DOCUMENT.write_text(write_tables(DOCUMENT.read_text("utf-8")))
