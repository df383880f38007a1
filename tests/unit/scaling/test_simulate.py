"""The simulator keeps its books, and the product's main promise holds in it."""

from __future__ import annotations

from tests.support.scaling_cases import queue_spec
from tidework.testing.simulate import simulate


def test_a_burst_goes_from_zero_up_and_back_to_zero() -> None:
    spec = queue_spec(maxReplicas=10, slots=2, scaling={"idleSeconds": 20})

    moments = simulate(spec, [400], service=2, start=3, seconds=120)

    counts = [moment.decision.replicas for moment in moments]
    assert counts[0] == 10
    assert counts[-1] == 0
    # 400 jobs of 2 s over 20 slots, after 3 s of starting
    assert [moment.second for moment in moments if moment.backlog][-1] == 3 + 40 - 2 - 1
    ended = next(m.second for m in moments if m.second > 3 and not m.backlog and not m.in_flight)
    assert counts.index(0) == ended + 20


def test_every_job_that_arrives_runs() -> None:
    spec = queue_spec(maxReplicas=3)
    arrivals = [1, 0, 5, 2, 9, 0, 4]

    moments = simulate(spec, arrivals, service=3, start=1, seconds=200)

    # Each job runs for 3 s and is seen in flight in 3 moments.
    assert sum(moment.in_flight for moment in moments) == 3 * sum(arrivals)
    assert moments[-1].backlog == 0


def test_ready_replicas_serve_at_once_and_those_that_start_do_not() -> None:
    spec = queue_spec(minReplicas=1, maxReplicas=2)

    warm = simulate(spec, [8], service=5, start=4, seconds=6, replicas=1)

    assert [moment.in_flight for moment in warm] == [1, 1, 1, 1, 2, 2]
