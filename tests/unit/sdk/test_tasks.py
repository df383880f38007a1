"""Declaring tasks, calling them, and what their params may be."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from tidework import JobState, Tidework
from tidework.errors import ConfigurationError, EnvelopeError, ParamsError
from tidework.model.identity import QueueName
from tidework.model.job import decode_job
from tidework.model.unique import Unique, UniqueUntil
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker
from tidework.worker.child.execution import Call, Execution
from tidework.worker.frames import JobFrame


class Address(BaseModel):
    street: str
    number: int


def make_app() -> tuple[Tidework, MemoryBroker]:
    broker = MemoryBroker()
    return Tidework("shop", settings=Settings(namespace="ns"), broker=broker), broker


def test_a_task_stays_callable() -> None:
    app, _ = make_app()

    @app.task
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(1, b=2) == 3
    assert add.__doc__ == "Adds."
    assert app.tasks["add"] is add
    with pytest.raises(TypeError):
        app.tasks["other"] = add  # type: ignore[index]


async def test_enqueue_stores_params_by_name_as_json() -> None:
    app, broker = make_app()

    @app.task(queue="emails", max_attempts=7, timeout=30, priority=2)
    def send(to: str, address: Address, at: datetime) -> None: ...

    handle = await send.enqueue(
        "a@example.org", Address(street="x", number=1), at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    record = await handle.get()
    job = decode_job(record.body, new_id="", now=0)
    assert job.params == {
        "to": "a@example.org",
        "address": {"street": "x", "number": 1},
        "at": "2026-01-01T00:00:00Z",
    }
    assert (job.task, job.max_attempts, job.timeout, job.priority) == ("send", 7, 30, 2)
    assert record.state is JobState.READY
    assert await app.client.queue_length("emails") == 1
    assert await broker.queues() == (QueueName("ns", "emails"),)
    back = send.signature.to_arguments(job.params)
    assert back["address"] == Address(street="x", number=1)
    assert back["at"] == datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_union_with_text_arrives_as_the_type_that_was_sent() -> None:
    app, _ = make_app()

    @app.task
    def note(at: datetime | str) -> None: ...

    for value in (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z", "tomorrow"):
        handle = await note.enqueue(value)
        frame = JobFrame(1, False, 0, 1, 4, 60.0, (await handle.get()).body)
        call = Execution(app.tasks, (QueueName("ns", "default"),)).prepare(frame)
        assert isinstance(call, Call)
        assert call.arguments == {"at": value}
        assert type(call.arguments["at"]) is type(value)


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ((), {}, "missing a required argument: 'a'"),
        (("x",), {}, "a: Input should be a valid integer"),
        ((1,), {"c": 2}, "unexpected keyword argument 'c'"),
        ((1, 2, 3), {}, "too many positional"),
        ((float("nan"),), {}, "a: "),
    ],
)
async def test_bad_params_are_refused_where_they_are_given(
    args: tuple[object, ...], kwargs: dict[str, object], told: str
) -> None:
    app, broker = make_app()

    @app.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    with pytest.raises(ParamsError, match=told):
        await add.enqueue(*args, **kwargs)  # type: ignore[arg-type]
    assert await broker.queues() == ()


async def test_defaults_are_those_of_the_worker_that_runs_the_job() -> None:
    app, _ = make_app()

    @app.task
    def greet(name: str, greeting: str = "hello") -> str:
        return f"{greeting} {name}"

    handle = await greet.enqueue("Ada")
    assert decode_job((await handle.get()).body, new_id="", now=0).params == {"name": "Ada"}


async def test_open_keywords_travel_too() -> None:
    app, _ = make_app()

    @app.task
    def log(level: str, **fields: int) -> None: ...

    handle = await log.enqueue("info", a=1, b=2)
    params = decode_job((await handle.get()).body, new_id="", now=0).params
    assert params == {"level": "info", "a": 1, "b": 2}
    assert log.signature.to_arguments(params) == {"level": "info", "a": 1, "b": 2}


async def test_options_delay_at_priority_and_id() -> None:
    app, _ = make_app()

    @app.task
    def tick() -> None: ...

    later = await tick.options(delay=timedelta(minutes=5), priority=0).enqueue()
    record = await later.get()
    assert (record.state, record.priority) == (JobState.SCHEDULED, 0)
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    record = await (await tick.options(at=moment).enqueue()).get()
    assert record.available_at == moment
    first = await tick.options(job_id="once").enqueue()
    second = await tick.options(job_id="once").enqueue()
    assert first.id == second.id == "once"
    assert (await app.client.stats("default")).counters["enqueued"] == 3


def test_wrong_options_are_told() -> None:
    app, _ = make_app()

    @app.task
    def tick() -> None: ...

    for options, told in (
        ({"delay": 1, "at": datetime.now(UTC)}, "use one"),
        ({"at": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001 - the fault
        ({"priority": 10}, "use 0"),
        ({"delay": float("nan")}, "delay=nan"),
        ({"delay": float("inf")}, "delay=inf"),
        ({"delay": "5"}, "delay='5'"),
        ({"job_id": "a b"}, "job_id"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            tick.options(**options)


def test_wrong_declarations_are_told() -> None:
    app, _ = make_app()

    @app.task
    def known() -> None: ...

    async def stream() -> AsyncIterator[int]:
        yield 1

    def numbered() -> Iterator[int]:
        yield 1

    def positional(a: int, /) -> None: ...

    def starred(*numbers: int) -> None: ...

    def strange(thing: threading.Lock) -> None: ...

    with pytest.raises(ConfigurationError, match="defined twice"):
        app.task(name="known")(known.function)
    for function, told in (
        (stream, "is a generator"),
        (numbered, "is a generator"),
        (positional, "no name on the wire"),
        (starred, "no name on the wire"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            app.task(function)
    with pytest.raises(ConfigurationError, match="DNS label"):
        app.task(name="x", queue="E_mails")(lambda: None)
    with pytest.raises(ConfigurationError, match="max_attempts"):
        app.task(name="x", max_attempts=0)(lambda: None)
    with pytest.raises(ConfigurationError, match="cannot be checked"):
        app.task(strange)


async def test_an_async_function_is_a_task_that_stays_callable() -> None:
    app, _ = make_app()

    @app.task
    async def double(a: int) -> int:
        return 2 * a

    assert await double(4) == 8
    assert double.is_async
    assert (await double.enqueue(4)).queue == "default"


async def test_many_jobs_in_one_go() -> None:
    app, _ = make_app()

    @app.task
    def add(a: int) -> int:
        return a

    handles = await add.enqueue_many({"a": n} for n in range(1203))
    assert len({handle.id for handle in handles}) == 1203
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert await app.client.queue_length("default") == 1203
    assert await add.enqueue_many([]) == []


async def test_a_fan_out_with_own_ids_happens_once() -> None:
    app, _ = make_app()

    @app.task
    def add(a: int) -> int:
        return a

    for _ in range(2):
        handles = await add.enqueue_many([{"a": 1}, {"a": 2}], job_ids=["one", "two"])
        assert [handle.id for handle in handles] == ["one", "two"]
    assert await app.client.queue_length("default") == 2
    for params, ids, told in (
        ([{"a": 1}], ["x", "y"], "1 jobs have 2 job_ids"),
        ([{"a": 1}], ["x y"], "job_id"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            await add.enqueue_many(params, job_ids=ids)
    with pytest.raises(ParamsError):
        await add.enqueue_many([{"a": 1}, {"b": 2}], job_ids=["three", "four"])
    assert await app.client.queue_length("default") == 2


def test_the_sync_twins_need_no_event_loop() -> None:
    app, _ = make_app()

    @app.task
    def add(a: int) -> int:
        return a

    handle = add.enqueue_sync(1)
    assert handle.get_sync().state is JobState.READY
    assert len(add.enqueue_many_sync([{"a": 2}, {"a": 3}])) == 2
    assert app.client.queue_length_sync("default") == 3
    assert handle.cancel_sync() == "cancelled"
    assert app.client.jobs_sync("default", JobState.CANCELLED).ids == (handle.id,)


@pytest.mark.parametrize("ttl", ["5m", True])
def test_a_ttl_of_a_unique_key_that_is_no_number_is_told(ttl: object) -> None:
    with pytest.raises(EnvelopeError, match=r"unique\.ttl: .* is not a number of seconds"):
        Unique("k", UniqueUntil.TTL, ttl)  # type: ignore[arg-type]
