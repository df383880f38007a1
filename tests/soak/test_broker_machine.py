"""As tests/property/test_broker_machine.py, for 10,000 steps on each server, and tells of them."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.broker_machine import BrokerMachine, open_stage
from tests.support.fixtures import namespace, redis_server, valkey

__all__ = ["namespace", "redis_server", "valkey"]

STEPS = 10_000
SETTINGS = settings(max_examples=100, stateful_step_count=50)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("server", ["valkey", "redis_server"])
def test_ten_thousand_steps(
    server: str,
    request: pytest.FixtureRequest,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = request.getfixturevalue(server)
    with open_stage(found, namespace, monkeypatch) as stage:
        machine = partial(BrokerMachine, stage)
        while stage.steps < STEPS:
            run_state_machine_as_test(machine, settings=SETTINGS)  # type: ignore[arg-type]
        print(stage.summary())
