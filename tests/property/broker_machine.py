"""The machine that plays all acts, and the stage on which it plays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.property.broker_machine_acts import acts_of
from tests.property.broker_machine_draws import JOBS, JobPlan
from tests.property.broker_machine_jobs import DocumentActs, JobActs
from tests.property.broker_machine_leaders import CronActs, LookActs
from tests.property.broker_machine_stage import Stage
from tests.property.broker_machine_workers import TimeActs
from tests.support.servers import ValkeyServer
from tidework.broker.redis import redis_broker as redis
from tidework.testing.memory import broker as memory

BATCH = 3
"""So few at once that what is left over for the next call is seen."""
TWICE = st.sampled_from((False, False, False, True))
THEMES = ("", "JobActs", "DocumentActs", "WorkerActs", "CronActs", "TimeActs", "LookActs")


class Everybody(JobActs, DocumentActs, CronActs, TimeActs, LookActs):
    """Whoever may act upon a queue."""


class BrokerMachine(RuleBasedStateMachine):
    """Drives the memory model and a real server with the same requests."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._player = Everybody(stage)
        self._theme = ""

    @initialize(theme=st.sampled_from(THEMES), plans=JOBS, want=st.integers(0, 3))
    def begin(self, theme: str, plans: list[JobPlan], want: int) -> None:
        """Some wait, some run."""
        self._theme = theme
        self._player.enqueue(plans)
        self._player.work(0, want, [])

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One act of the example's theme, or another one."""
        self._player.twins.stage.steps += 1
        self._player.perform(data.draw(acts_of(Everybody, self._theme)))
        if data.draw(TWICE):
            self._player.send_twice()

    def teardown(self) -> None:
        self._player.twins.close()


@contextmanager
def open_stage(
    server: ValkeyServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """A stage on a server, for one test."""
    for module in (memory, redis):
        monkeypatch.setattr(module, "BATCH", BATCH)
    with server.client() as client:
        stage = Stage(server.url, client, namespace)
        yield stage
        stage.close()
