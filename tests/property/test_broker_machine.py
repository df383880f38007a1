"""Whatever is asked of a queue in whatever order: a real server does what the memory model does."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.broker_machine import BrokerMachine, open_stage
from tests.support.fixtures import namespace, valkey
from tests.support.servers import ValkeyServer

__all__ = ["namespace", "valkey"]

SETTINGS = settings(max_examples=200, stateful_step_count=20)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_the_server_does_what_the_model_does(
    valkey: ValkeyServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_stage(valkey, namespace, monkeypatch) as stage:
        machine = partial(BrokerMachine, stage)
        run_state_machine_as_test(machine, settings=SETTINGS)  # type: ignore[arg-type]
