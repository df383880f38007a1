"""Bounds are checked where they are said: at the declaration, at the call, by the command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner

from tidework import Client, Tidework
from tidework.cli.commands import root
from tidework.errors import ConfigurationError, ParamsError, WaitTimeoutError
from tidework.model.bounds import LONGEST_TIMEOUT_S
from tidework.model.job import decode_job
from tidework.model.retry import RetryPolicy
from tidework.settings import Settings
from tidework.testing.memory.broker import MemoryBroker


def make_app() -> Tidework:
    return Tidework("shop", settings=Settings(namespace="ns"), broker=MemoryBroker())


WRONG: list[dict[str, Any]] = [
    {"max_attempts": 2.5},
    {"max_attempts": True},
    {"max_attempts": 0},
    {"max_attempts": 1001},
    {"max_attempts": 10**9},
    {"max_attempts": "3"},
    {"timeout": 1e9},
    {"timeout": 31_536_001},
    {"timeout": 0.0001},
    {"timeout": True},
    {"timeout": float("nan")},
    {"timeout": timedelta(days=366)},
    {"soft_timeout": 1e9},
    {"soft_timeout": 0.0001},
    {"priority": True},
    {"priority": 2.0},
    {"priority": 10},
    {"priority": "1"},
    {"delays": [-1]},
    {"delays": [1e12]},
    {"delays": [True]},
    {"delays": 5},
]


@pytest.mark.parametrize("options", WRONG)
def test_a_declaration_with_a_number_out_of_bounds_is_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=name.replace("soft_", "soft.")):
        make_app().task(**options)(_tick)
    with pytest.raises(ConfigurationError, match=name.replace("soft_", "soft.")):
        make_app().command("c", ["true"], **options)


def test_what_is_within_bounds_can_be_read_by_every_worker() -> None:
    app = make_app()
    for timeout in (0.001, LONGEST_TIMEOUT_S):
        task = app.task(name=f"t{timeout}", max_attempts=1000, timeout=timeout, priority=9)(
            lambda: None
        )
        record = task.options(delay=timedelta(days=3660)).enqueue_sync().get_sync()
        assert decode_job(record.body, new_id="", now=0).timeout == timeout


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 2.6e11},
        {"delay": -5},
        {"delay": True},
        {"priority": True},
        {"priority": 1.0},
        {"at": datetime(1969, 12, 31, tzinfo=UTC)},
        {"at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))},
    ],
)
def test_options_out_of_bounds_are_refused(options: dict[str, Any]) -> None:
    tick = make_app().task(_tick)

    with pytest.raises(ConfigurationError, match=next(iter(options))):
        tick.options(**options)


def _tick() -> None: ...


@pytest.mark.parametrize("delay", ["-5", "2.6e11", "nan"])
def test_the_command_line_refuses_a_delay_out_of_bounds(delay: str) -> None:
    found = CliRunner().invoke(root, ["enqueue", "t", "--delay", delay])

    assert found.exit_code == 2
    assert "--delay" in found.output


def test_the_command_line_refuses_a_param_that_comes_twice() -> None:
    found = CliRunner().invoke(root, ["enqueue", "t", '{"a": 1, "a": 2}'])

    assert found.exit_code == 2
    assert "comes twice" in found.output


@pytest.mark.parametrize("timeout", [float("nan"), "5", True, Decimal(1), timedelta(seconds=1)])
async def test_a_wait_that_is_no_time_is_refused(timeout: Any) -> None:
    handle = await make_app().task(_tick).enqueue()

    with pytest.raises(ConfigurationError, match="timeout="):
        await handle.result(timeout=timeout)
    with pytest.raises(ConfigurationError, match="timeout="):
        handle.result_sync(timeout=timeout)


async def test_a_wait_that_is_over_at_once_is_one() -> None:
    handle = await make_app().task(_tick).enqueue()

    for timeout in (0, -1, 0.0):
        with pytest.raises(WaitTimeoutError):
            await handle.result(timeout=timeout)


class Shop:
    def send(self, to: str) -> None: ...

    @staticmethod
    def greet(to: str) -> None: ...

    @classmethod
    def close(cls) -> None: ...

    def __call__(self, to: str) -> None: ...


@pytest.mark.parametrize(
    "given", [functools.partial(print, "x"), Shop(), Shop, Shop.send, 5, "print"]
)
@pytest.mark.parametrize("name", [None, "t"])
def test_what_is_no_function_is_told_as_such(given: Any, name: str | None) -> None:
    with pytest.raises(ConfigurationError, match=r"has to be a function|is a method"):
        make_app().task(given) if name is None else make_app().task(name=name)(given)


@pytest.mark.parametrize("given", [Shop.greet, Shop().send, Shop.close])
async def test_a_method_that_knows_its_object_is_a_function(given: Callable[..., None]) -> None:
    task = make_app().task(given)

    with pytest.raises(ParamsError, match=r"missing a required argument|unexpected keyword"):
        await task.enqueue(other=1)


async def test_a_param_may_have_any_name() -> None:
    app = make_app()

    @app.task
    def strange(self: int, args: int, kwargs: int, task: int, params: int) -> int:
        return self + args + kwargs + task + params

    given = {"self": 1, "args": 2, "kwargs": 3, "task": 4, "params": 5}
    assert strange(**given) == 15
    for handle in (
        await strange.enqueue(**given),
        strange.enqueue_sync(**given),
        await strange.options(priority=1).enqueue(**given),
        strange.options(priority=1).enqueue_sync(**given),
        *await strange.enqueue_many([given]),
    ):
        params = decode_job((await handle.get()).body, new_id="", now=0).params
        assert params == given
        assert strange.signature.to_arguments(params) == given


def test_a_listed_delay_is_kept_as_it_was_said() -> None:
    policy = RetryPolicy(delays=(timedelta(hours=2), timedelta(hours=5)), jitter=0)

    waits = [policy.delay_after(attempt, lambda: 0.0) for attempt in (1, 2, 3)]

    assert waits == [timedelta(hours=2), timedelta(hours=5), timedelta(hours=5)]


@pytest.mark.parametrize("said", ["DEBUG", "Debug", "debug"])
def test_a_log_level_is_the_same_in_capitals(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEWORK_LOG_LEVEL", said)
    monkeypatch.setenv("TIDEWORK_LOG_FORMAT", "JSON")

    assert Settings.load().log_level == "debug"
    assert Settings.load().log_format == "json"
    assert Client().settings.log_level == "debug"
