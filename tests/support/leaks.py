"""Nothing is left behind: every key of a queue has a TTL, or contents that something owns.

``find_faults`` says what is wrong in one queue. It holds between any two scripts, whatever they
were: a job is in one place, and whatever names a job, a worker or a key names one that is there.
``LeakWatch`` looks at the queues that came to a server since it last looked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from tests.support.servers import ValkeyServer
from tests.support.stored_queue import ENDED, HELD, StoredQueue, StoredRecord, read_queue
from tidework.broker.cordons import BY_PERSON
from tidework.broker.fires import read_fires
from tidework.broker.keys import NAMESPACE_PARTS, QUEUE_PARTS, REGISTRY
from tidework.model.identity import QueueName

EXPIRING = frozenset({"leader"})
"""Parts that nobody deletes: they end by themselves."""
COUNTED = frozenset(
    [
        "meta",
        "inbox",
        "intake",
        "tasks",
        "tombstones",
        "counters",
        "services",
        "tallies",
        "points",
        "point_tasks",
        "guard",
        "draining",
        "seen",
        "term",
        "crontasks",
        "scaling",
        "decisions",
    ]
)
"""Parts that own themselves: settings, numbers, what is taken from their ends or by time."""
CHECKED = frozenset(QUEUE_PARTS) - EXPIRING - COUNTED
"""Parts whose contents find_faults looks at."""
_KEY = re.compile(r"tw1:\{([^}]*)\}:(.*)")


def find_faults(stored: StoredQueue) -> list[str]:
    """What is wrong, in words; empty if nothing is."""
    return [
        *_in_one_place(stored),
        *_owned_by_jobs(stored),
        *_unknown(stored),
        *_leases(stored),
        *_index(stored),
        *_unique_keys(stored),
        *_onces(stored),
        *_held_jobs(stored),
        *_spans(stored),
        *_crontasks(stored),
        *_workers(stored),
    ]


def _places(stored: StoredQueue) -> Iterator[tuple[str, str]]:
    """Job, state for every entry."""
    for part, state in (
        ("ready", "waiting"),
        ("scheduled", "waiting"),
        ("leases", "running"),
        *((name, name) for name in ENDED),
    ):
        for job_id in getattr(stored, part):
            yield job_id, state


def _in_one_place(stored: StoredQueue) -> Iterator[str]:
    places = Counter(job_id for job_id, _ in _places(stored))
    for job_id in stored.jobs.keys() | places.keys():
        if job_id not in stored.jobs:
            yield f"job {job_id} has a place and no body"
        elif places[job_id] != 1:
            yield f"job {job_id} is in {places[job_id]} places"
    for job_id, state in _places(stored):
        record = stored.record_of(job_id)
        if record is None or record.state != state:
            yield f"job {job_id} lies among the {state} ones, its record is {record}"
    for part in ENDED:
        for job_id, ms in getattr(stored, part).items():
            record = stored.records.get(job_id)
            if record is not None and record.changed != ms:
                yield f"job {job_id} ended at {ms} or at {record.changed}"


def _owned_by_jobs(stored: StoredQueue) -> Iterator[str]:
    for part in ("records", "details", "history"):
        for job_id in getattr(stored, part).keys() - stored.jobs.keys():
            yield f"{part} of job {job_id}, which does not exist"
    for job_id in stored.progress:
        record = stored.record_of(job_id) if job_id in stored.jobs else None
        if record is None or record.state in ("succeeded", "cancelled"):
            yield f"progress of job {job_id}, which is {record or 'not there'}"


def _unknown(stored: StoredQueue) -> Iterator[str]:
    for job_id in stored.unknown.keys() | stored.unknown_until.keys():
        record = stored.records.get(job_id)
        due, until = stored.unknown.get(job_id), stored.unknown_until.get(job_id)
        if record is not None and record.state == "running" and record.releases:
            # Claimed meanwhile: only how long it waited is kept, below 0 (finish.lua).
            if due is not None or until is None or until >= 0:
                yield f"job {job_id} runs, and waits for a worker that knows it until {until}"
            continue
        if record is None or record.state != "waiting" or not record.releases:
            yield f"job {job_id} waits for a worker that knows it, and is {record or 'not there'}"
            continue
        if due != record.available or until is None or until < due:
            yield f"job {job_id} is due at {record.available} or {due}, waits until {until}"


def _leases(stored: StoredQueue) -> Iterator[str]:
    busy: Counter[str] = Counter()
    for job_id, record in stored.records.items():
        if (record.state in ("running", "succeeded")) != bool(record.token):
            yield f"job {job_id} is {record.state} with the token {record.token!r}"
        if record.state == "running":
            busy[record.token.rpartition(":")[0]] += 1
    if stored.holders != busy:
        yield f"holders {stored.holders}, leases of {dict(busy)}"


def _index(stored: StoredQueue) -> Iterator[str]:
    wanted, errors = set(), Counter[str]()
    for part in ENDED:
        for job_id in getattr(stored, part):
            record = stored.records.get(job_id)
            if record is None:
                continue
            tail = f"|{record.changed:013}|{job_id}"
            if record.task and part != "succeeded":
                wanted.add(f"task:{record.task}|{part[0].upper()}{tail}")
            if part == "dead":
                wanted.add(f"error:{record.fingerprint}{tail}")
                errors[record.fingerprint] += 1
    for member in stored.index.keys() ^ wanted:
        yield f"the index {'has' if member in stored.index else 'lacks'} {member}"
    if stored.errors != errors:
        yield f"errors {stored.errors}, dead letters of {dict(errors)}"


def _living(stored: StoredQueue, job_id: str) -> StoredRecord | None:
    record = stored.record_of(job_id) if job_id in stored.jobs else None
    return None if record is None or record.state in ENDED else record


def _unique_keys(stored: StoredQueue) -> Iterator[str]:
    for key, job_id in stored.uniques.items():
        record = _living(stored, job_id)
        if key not in stored.unique_ttls and (record is None or record.unique[1:] != key):
            yield f"unique key {key!r} names job {job_id}, which is {record or 'not there'}"
    for key in stored.unique_ttls.keys() - stored.uniques.keys():
        yield f"unique key {key!r} has a time and no holder"
    for job_id, record in stored.records.items():
        holds = stored.uniques.get(record.unique[1:]) == job_id
        # One that is told to stop has lost its key to the job that replaces it.
        if record.unique[:1] == "e" and _living(stored, job_id) and not (holds or record.cancel):
            yield f"job {job_id} lives without its unique key {record.unique[1:]!r}"


def _onces(stored: StoredQueue) -> Iterator[str]:
    for key in stored.onces.keys() ^ stored.once_ttls.keys():
        has = "a mark and no time" if key in stored.onces else "a time and no mark"
        yield f"once key {key!r} has {has}"


def _spans(stored: StoredQueue) -> Iterator[str]:
    owners = {"j": stored.scheduled, "u": stored.unique_ttls, "o": stored.once_ttls}
    for member in stored.spans:
        if member[1:] not in owners[member[0]]:
            yield f"the spans have {member}, which waits for nothing"
    for kind in "uo":
        for key in owners[kind].keys() - {member[1:] for member in stored.spans}:
            yield f"the spans lack {kind}{key}"


def _held_jobs(stored: StoredQueue) -> Iterator[str]:
    links = dict[str, str]()
    for name, job_id in stored.replacing.items():
        side, _, other = name.partition("/")
        other_side = {"after": "before", "before": "after"}[side]
        if stored.replacing.get(f"{other_side}/{job_id}") != other:
            yield f"the link {name} = {job_id} goes one way"
        if side == "before":
            links[other] = job_id
    for new, old in links.items():
        record = _living(stored, old)
        if record is None or record.state != "running":
            yield f"job {new} waits for job {old}, which is {record or 'not there'}"
        if stored.scheduled.get(new) != HELD:
            yield f"job {new} is linked to job {old} and not held"
    for job_id, score in stored.scheduled.items():
        record = stored.record_of(job_id)
        cron = record.cron if record else ""
        awaited = cron and stored.crons.get(f"{cron}/held") == job_id
        if score == HELD and not awaited and job_id not in links:
            yield f"job {job_id} is held and nothing will let it go"


def _crontasks(stored: StoredQueue) -> Iterator[str]:
    runs = set()
    for job_id, record in stored.records.items():
        if record.cron and _living(stored, job_id):
            runs.add(f"{record.cron}|{job_id}")
    for member in stored.runs.keys() ^ runs:
        yield f"the runs {'have' if member in stored.runs else 'lack'} {member}"
    for name, value in stored.crons.items():
        uid, _, part = name.rpartition("/")
        if part == "held":
            others = [m for m in runs if m.startswith(f"{uid}|") and m != f"{uid}|{value}"]
            if stored.scheduled.get(value) != HELD or not others:
                yield f"CronTask {uid} holds {value} for {others}"
        elif uid not in stored.crontasks:
            yield f"{part} of CronTask {uid}, which is not mirrored"
    for uid, lines in stored.fires.items():
        if uid not in stored.crontasks:
            yield f"fires of CronTask {uid}, which is not mirrored"
        for fire in read_fires(uid, lines):
            run = stored.records.get(fire.job_id)
            if run is not None and run.cron == uid and fire.outcome != _end_of(run):
                yield f"the history has {fire.outcome} of run {fire.job_id}, which is {run}"


def _end_of(record: StoredRecord) -> str | None:
    return record.state if record.state in ENDED else None


def _workers(stored: StoredQueue) -> Iterator[str]:
    for part in ("replies", "presence", "stack_requests", "stacks"):
        for worker in set(getattr(stored, part)) - stored.seen.keys():
            yield f"{part} of worker {worker}, which was never seen"
    for worker in stored.stacks.keys() - stored.stack_requests.keys():
        yield f"stacks of worker {worker}, which nobody asked for"
    for worker, score in stored.draining.items():
        if score >= BY_PERSON and stored.presence.get(worker) is None:
            yield f"a person's cordon of worker {worker}, which is gone"


class LeakWatch:
    """Looks at what came to one server since the last look."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._known: set[bytes] = set()

    def find_leaks(self) -> list[str]:
        """What is wrong with the queues that came, and with keys that are no part of one."""
        keys = set(self._client.scan_iter(count=10_000))
        new, self._known = sorted(keys - self._known), keys
        pipeline = self._client.pipeline()
        for key in new:
            pipeline.pttl(key)
        found, queues = [], set[str]()
        for key, ttl in zip(new, pipeline.execute(), strict=True):
            name, expires = key.decode(errors="replace"), ttl != -1
            match = _KEY.fullmatch(name)
            part = match[2] if match else ""
            if match and part in QUEUE_PARTS:
                queues.add(match[1])
            is_of_namespace = (
                match is not None and match[1].endswith("/") and part in NAMESPACE_PARTS
            )
            if name == REGISTRY or is_of_namespace or part in CHECKED | COUNTED:
                if expires:
                    found.append(f"{name} is not to expire")
            elif not expires:
                found.append(f"{name} has neither a TTL nor an owner")
        for queue in sorted(queues):
            faults = find_faults(read_queue(self._client, QueueName.parse(queue)))
            found += [f"queue {queue}: {fault}" for fault in faults]
        return found


@contextmanager
def watching(server: ValkeyServer) -> Iterator[None]:
    """Have ``no_leaks`` look at this server too."""
    with server.client() as client:
        watch = LeakWatch(client)
        _WATCHES.append(watch)
        yield
        _WATCHES.remove(watch)


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test: nothing that it left on a watched server is without an owner.

    ``@pytest.mark.leaves_keys(what, reason)`` lets a test leave that behind: ``what`` is a part
    of the fault's text.
    """
    yield
    excused = [mark.args[0] for mark in request.node.iter_markers("leaves_keys")]
    faults = [fault for watch in _WATCHES for fault in watch.find_leaks()]
    leaks = [fault for fault in faults if not any(what in fault for what in excused)]
    assert not leaks, "\n".join(leaks)


_WATCHES: list[LeakWatch] = []
