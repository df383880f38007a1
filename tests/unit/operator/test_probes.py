"""What the operator answers to probes: its own loop counts, nobody else's absence does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from tests.unit.test_probes import get
from tidework.clock import ManualClock
from tidework.probes import ProbeServer
from tidework_operator.probes import Number, OperatorHealth, Reading, Spread


class ProbedOperator:
    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 5, tzinfo=UTC))
        self.waits_for = "nothing was listed yet"
        self.readings: list[Reading] = []
        self.health = OperatorHealth(
            self.clock, waits_for=lambda: self.waits_for, readings=lambda: self.readings
        )

    def samples(self) -> dict[tuple[object, ...], float]:
        families = text_string_to_metric_families(self.health.metrics().decode())
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }


async def test_not_alive_once_the_loop_stands_still() -> None:
    probed = ProbedOperator()
    probed.clock.advance(timedelta(seconds=10))
    assert probed.health.livez() == ""

    probed.clock.advance(timedelta(seconds=1))
    assert probed.health.livez() == "the operator's loop has not turned for 11 s"
    await probed.health._tick()

    assert probed.health.livez() == ""


def test_ready_once_all_was_listed_until_it_stops() -> None:
    probed = ProbedOperator()
    assert probed.health.readyz() == "nothing was listed yet"
    probed.waits_for = ""
    assert probed.health.readyz() == ""
    probed.health.stopping = True
    assert probed.health.readyz() == "stopping"


def test_numbers_become_families() -> None:
    probed = ProbedOperator()
    probed.readings = [
        Number("leader", "Leads", True),
        Number("fires", "Fires", 3, {"verdict": "enqueued"}, is_sum=True),
        Number("replicas", "Replicas", 2, {"namespace": "shop", "queue": "emails"}),
        Number("fires", "Fires", 1, {"verdict": "skipped"}, is_sum=True),
        Spread("fire_lateness_seconds", "Late", (0.1, 1.0), (5, 1, 2), 30.5),
    ]

    samples = probed.samples()

    assert samples["tidework_operator_leader",] == 1
    assert samples["tidework_operator_fires_total", ("verdict", "enqueued")] == 3
    assert samples["tidework_operator_fires_total", ("verdict", "skipped")] == 1
    place = (("namespace", "shop"), ("queue", "emails"))
    assert samples["tidework_operator_replicas", *place] == 2
    late = "tidework_operator_fire_lateness_seconds"
    assert samples[f"{late}_bucket", ("le", "1.0")] == 6
    assert samples[f"{late}_bucket", ("le", "+Inf")] == 8
    assert samples[f"{late}_sum",] == 30.5


def test_numbers_are_read_at_each_request() -> None:
    probed = ProbedOperator()
    probed.readings = [Number("leader", "Leads", 0)]
    assert probed.samples()["tidework_operator_leader",] == 0

    probed.readings = [Number("leader", "Leads", 1)]

    assert probed.samples()["tidework_operator_leader",] == 1


def test_they_are_served_over_http() -> None:
    probed = ProbedOperator()
    server = ProbeServer("127.0.0.1", 0, probed.health)
    try:
        assert get(server.port, "/livez") == (200, "ok\n")
        assert get(server.port, "/readyz")[0] == 503
        assert get(server.port, "/metrics") == (200, "")
    finally:
        server.close()
