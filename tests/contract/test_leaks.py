"""The leak check sees what it is there to see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis

from tests.support.leaks import LeakWatch, find_faults
from tests.support.servers import ValkeyServer
from tests.support.stored_queue import read_queue
from tidework.broker.connection.transport import drive
from tidework.broker.keys import queue_key
from tidework.broker.redis.redis_broker import connect_blocking
from tidework.model.backlog import Presence
from tidework.model.identity import QueueName
from tidework.model.job import Job
from tidework.model.lease import ExchangeRequest, Settlement
from tidework.model.outcome import JobError, Outcome
from tidework.model.unique import OnConflict, Unique


@pytest.fixture
def client(valkey: ValkeyServer) -> Iterator[redis.Redis]:
    with valkey.client() as found:
        yield found


@pytest.fixture
def queue(valkey: ValkeyServer, client: redis.Redis, namespace: str) -> Iterator[QueueName]:
    """One job runs and is told to stop for another one; one is ready, one is dead."""
    name = QueueName(namespace, "q")
    broker = connect_blocking(valkey.url)
    unique = Unique("k", on_conflict=OnConflict.REPLACE)
    drive(broker.enqueue(name, [Job("dead", "t", {}), Job("old", "t", {}, unique=unique)]))
    drive(broker.exchange(name, ExchangeRequest("w", 1, 2)))
    died = Settlement("dead", "w:1", Outcome.bury(JobError("E", "m")))
    drive(broker.exchange(name, ExchangeRequest("w", 2, 0, (died,))))
    drive(broker.enqueue(name, [Job("new", "t", {}, unique=unique), Job("ready", "t", {})]))
    presence = Presence("w", datetime(2026, 1, 1, tzinfo=UTC))
    drive(broker.beat(name, presence, ttl=timedelta(minutes=1)))
    assert find_faults(read_queue(client, name)) == []
    yield name
    drive(broker.close())
    client.delete(*client.scan_iter(f"*{namespace}*"))


def run(client: redis.Redis, command: str) -> None:
    client.execute_command(*command.split())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("part", "command", "says"),
    [
        ("jobs", "HDEL {} ready", "job ready has a place and no body"),
        ("jobs", "HSET {} lost t", "job lost is in 0 places"),
        ("dead", "ZADD {} 5 ready", "job ready is in 2 places"),
        ("dead", "ZADD {} 5 dead", "job dead ended at 5 or at"),
        ("ready", "ZADD {} 5 dead", "job dead lies among the waiting ones"),
        ("records", "HDEL {} old", "job old lies among the running ones"),
        ("details", "HSET {} gone 7", "details of job gone, which does not exist"),
        ("progress", "HSET {} gone 7", "progress of job gone, which is not there"),
        ("holders", "HDEL {} w", "holders {}, leases of"),
        ("holders", "HSET {} w2 1", "leases of"),
        ("index", "ZADD {} 0 task:t|S|5|gone", "the index has task:t|S|5|gone"),
        ("index", "DEL {}", "the index lacks task:t|D|"),
        ("errors", "DEL {}", "errors {}, dead letters of"),
        ("uniques", "HSET {} other gone", "unique key 'other' names job gone"),
        ("uniques", "HDEL {} k", "job new lives without its unique key 'k'"),
        ("unique_ttls", "ZADD {} 5 gone", "unique key 'gone' has a time and no holder"),
        ("spans", "ZADD {} 5 jgone", "the spans have jgone, which waits for nothing"),
        ("spans", "ZADD {} 5 ugone", "the spans have ugone, which waits for nothing"),
        ("onces", "HSET {} gone done", "once key 'gone' has a mark and no time"),
        ("once_ttls", "ZADD {} 5 gone", "once key 'gone' has a time and no mark"),
        ("replacing", "HDEL {} after/old", "the link before/new = old goes one way"),
        ("replacing", "DEL {}", "job new is held and nothing will let it go"),
        ("replacing", "HSET {} after/dead ready before/ready dead", "waits for job dead"),
        ("runs", "ZADD {} 0 uid|gone", "the runs have uid|gone"),
        ("crons", "HSET {} uid/held new", "CronTask uid holds new for []"),
        ("crons", "HSET {} uid/watermark 5", "watermark of CronTask uid, which is not mirrored"),
        ("fires", "HSET {} gone 0", "fires of CronTask gone, which is not mirrored"),
        ("replies", "HSET {} gone 5", "replies of worker gone, which was never seen"),
        ("presence", "HSET {} gone 5", "presence of worker gone, which was never seen"),
    ],
)
def test_what_has_no_owner_is_a_fault(
    client: redis.Redis, queue: QueueName, part: str, command: str, says: str
) -> None:
    run(client, command.replace("{}", queue_key(queue, part)))
    assert says in "\n".join(find_faults(read_queue(client, queue)))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("SET tw1:{Q}:unheard 1", "unheard has neither a TTL nor an owner"),
        ("SET Q 1", "has neither a TTL nor an owner"),
        ("SET tw1:{Q}:leader 1", "leader has neither a TTL nor an owner"),
        ("PEXPIRE tw1:{Q}:jobs 99999", "jobs is not to expire"),
        ("HSET tw1:{Q}:details gone 7", "details of job gone"),
    ],
)
def test_keys_that_came_are_looked_at_once(
    client: redis.Redis, queue: QueueName, command: str, says: str
) -> None:
    run(client, command.replace("Q", str(queue)))
    watch = LeakWatch(client)
    assert says in "\n".join(watch.find_leaks())
    assert watch.find_leaks() == []
