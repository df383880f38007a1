"""What holds for every decision, and for every queue that is played through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.scaling_cases import load, queue_spec
from tidework.manifests import Scaling
from tidework.model.backlog import QueueLoad
from tidework.scaling import Decision, History, ReplicaStates, ScalingInput, decide
from tidework.testing.simulate import Moment, simulate

pytestmark = pytest.mark.thorough

COUNTS = st.integers(0, 30)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    policy = st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 150),
            "periodSeconds": st.integers(1, 120),
        }
    )
    return {
        "stabilizationWindowSeconds": draw(st.integers(0, 120)),
        "selectPolicy": draw(st.sampled_from(["Max", "Max", "Min", "Disabled"])),
        "policies": draw(st.lists(policy, min_size=1, max_size=3)),
    }


@st.composite
def rules(draw: st.DrawFn) -> Scaling:
    fields: dict[str, Any] = {
        "targetBacklogPerSlot": draw(st.sampled_from([0.5, 1.0, 4.0, 25.0])),
        "idleSeconds": draw(st.integers(1, 60)),
        "tolerance": draw(st.sampled_from([0.0, 0.1, 0.5])),
        "fallbackSeconds": draw(st.integers(1, 60)),
        "behavior": {"scaleUp": draw(policies()), "scaleDown": draw(policies())},
    }
    if draw(st.booleans()):
        fields["targetWaitSeconds"] = draw(st.sampled_from([0.5, 10.0, 300.0]))
    return queue_spec(scaling=fields).scaling


LOADS = st.builds(
    lambda backlog, in_flight, due_soon, seconds: load(
        backlog,
        in_flight,
        due_soon=due_soon,
        service_time={} if seconds is None else {"task": seconds},
    ),
    st.one_of(st.just(0), st.integers(0, 400)),
    st.one_of(st.just(0), COUNTS),
    st.integers(0, 2),
    st.none() | st.floats(0.001, 100.0),
)


@dataclass(frozen=True)
class Step:
    """One moment of a history: what was gathered (None: an error), and after how long."""

    found: QueueLoad | None
    seconds: float
    busy: int
    draining: int
    prescale: int
    jump: int | None  # somebody else sets the replicas


STEPS = st.builds(
    Step,
    found=st.none() | LOADS | LOADS | LOADS,
    seconds=st.floats(0.5, 90.0),
    busy=COUNTS,
    draining=st.just(0) | st.integers(0, 10),
    prescale=st.just(0) | st.integers(0, 40),
    jump=st.none() | st.none() | st.none() | COUNTS,
)


@st.composite
def queues(draw: st.DrawFn) -> ScalingInput:
    low = draw(st.integers(0, 5))
    return ScalingInput(
        load=draw(LOADS),
        now=0.0,
        replicas=draw(COUNTS),
        states=ReplicaStates(),
        slots=draw(st.integers(1, 4)),
        min_replicas=low,
        max_replicas=draw(st.integers(max(1, low), 25)),
        scaling=draw(rules()),
    )


def moment(queue: ScalingInput, step: Step) -> ScalingInput:
    """The next input of a queue: at most all of its replicas are busy."""
    replicas = queue.replicas if step.jump is None else step.jump
    busy = min(step.busy, replicas)
    return replace(
        queue,
        load=step.found,
        now=queue.now + step.seconds,
        replicas=replicas,
        states=ReplicaStates(0, replicas - busy, busy, step.draining),
        prescale=step.prescale,
        error="away",
    )


def play(queue: ScalingInput, steps: list[Step]) -> list[tuple[ScalingInput, Decision]]:
    played = []
    for step in steps:
        queue = moment(queue, step)
        decision = decide(queue)
        played.append((queue, decision))
        queue = replace(queue, replicas=decision.replicas, history=decision.history)
    return played


HISTORIES = st.lists(STEPS, min_size=1, max_size=12)


@settings(max_examples=60)
@given(queues(), HISTORIES)
def test_the_count_stays_within_its_bounds_unless_busy_replicas_forbid(
    queue: ScalingInput, steps: list[Step]
) -> None:
    for seen, decision in play(queue, steps):
        if seen.load is None:
            continue
        assert decision.replicas >= seen.min_replicas or seen.states.draining
        assert decision.replicas <= max(seen.max_replicas, seen.states.busy)
        assert seen.min_replicas <= decision.wanted <= seen.max_replicas


@settings(max_examples=60)
@given(queues(), HISTORIES)
def test_no_busy_replica_is_ever_taken_away(queue: ScalingInput, steps: list[Step]) -> None:
    for seen, decision in play(queue, steps):
        assert decision.replicas >= seen.states.busy
        assert decision.drain_to <= decision.replicas
        if decision.drain_to < decision.replicas:
            assert decision.replicas == seen.states.busy


@settings(max_examples=60)
@given(queues(), HISTORIES)
def test_growth_leaves_room_for_what_still_drains(queue: ScalingInput, steps: list[Step]) -> None:
    for seen, decision in play(queue, steps):
        if seen.load is not None and decision.replicas > seen.replicas:
            assert decision.replicas + seen.states.draining <= seen.max_replicas


@settings(max_examples=60)
@given(queues(), HISTORIES)
def test_an_error_never_scales_down(queue: ScalingInput, steps: list[Step]) -> None:
    for seen, decision in play(queue, steps):
        if seen.load is None:
            assert decision.replicas in (seen.replicas, max(seen.replicas, seen.min_replicas))


@settings(max_examples=60)
@given(queues(), HISTORIES)
def test_zero_is_reached_only_by_a_queue_that_was_idle_for_long_enough(
    queue: ScalingInput, steps: list[Step]
) -> None:
    idle_since: float | None = None
    for seen, decision in play(queue, steps):
        found = seen.load
        is_idle = found is not None and not (
            found.backlog or found.in_flight or found.due_soon or seen.prescale
        )
        idle_since = (seen.now if idle_since is None else idle_since) if is_idle else None
        if decision.replicas == 0 and seen.replicas > 0:
            assert idle_since is not None
            assert seen.now - idle_since >= seen.scaling.idle_seconds


@settings(max_examples=60)
@given(queues(), HISTORIES)
def test_a_count_that_is_not_what_the_load_asks_for_has_its_reason(
    queue: ScalingInput, steps: list[Step]
) -> None:
    for seen, decision in play(queue, steps):
        if decision.replicas != decision.wanted:
            assert decision.limited or "tolerance" in decision.reason
        assert len(decision.reason.split("; ")) > len(decision.limits)
        assert seen.load is not None or "away" in decision.reason


@given(queues(), st.integers(0, 400), st.integers(0, 400), COUNTS, COUNTS)
def test_a_larger_backlog_never_means_fewer_replicas(
    queue: ScalingInput, one: int, other: int, in_flight: int, busy: int
) -> None:
    busy = min(busy, queue.replicas)
    small, large = (
        decide(
            replace(
                queue,
                load=load(backlog, in_flight, service_time={"task": 2.0}),
                states=ReplicaStates(0, queue.replicas - busy, busy),
                history=History(),
            )
        )
        for backlog in sorted((one, other))
    )

    assert small.replicas <= large.replicas
    assert small.wanted <= large.wanted


def turns(moments: list[Moment]) -> int:
    """How often the count changed its direction."""
    counts = [entry.decision.replicas for entry in moments]
    moves = [after - before for before, after in pairwise(counts) if after != before]
    return sum((one > 0) != (other > 0) for one, other in pairwise(moves))


WORK = st.fixed_dictionaries(
    {"service": st.integers(1, 8), "start": st.integers(1, 10), "replicas": st.integers(0, 6)}
)


def shapes(windows: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    """Specs whose scaleDown window is drawn from ``windows``."""
    return st.fixed_dictionaries(
        {
            "slots": st.integers(1, 3),
            "maxReplicas": st.integers(1, 12),
            "minReplicas": st.integers(0, 1),
            "scaling": st.fixed_dictionaries(
                {
                    "idleSeconds": st.integers(1, 20),
                    "targetBacklogPerSlot": st.sampled_from([1.0, 4.0]),
                    "behavior": st.fixed_dictionaries(
                        {
                            "scaleDown": st.fixed_dictionaries(
                                {"stabilizationWindowSeconds": windows}
                            )
                        }
                    ),
                }
            ),
        }
    )


@settings(max_examples=60)
@given(shapes(st.integers(0, 40)), WORK, st.lists(st.integers(0, 30), max_size=10))
def test_a_backlog_drains_and_the_queue_ends_at_its_minimum(
    shape: dict[str, Any], work: dict[str, int], arrivals: list[int]
) -> None:
    spec = queue_spec(**shape)
    # At worst one slot serves all of it.
    seconds = 100 + sum(arrivals) * work["service"]
    moments = simulate(spec, arrivals, seconds=min(seconds, 2600), **work)

    assert moments[-1].backlog == 0
    assert moments[-1].in_flight == 0
    assert moments[-1].decision.replicas == spec.min_replicas
    # Work is never abandoned: each job was in flight for its service time.
    assert sum(entry.in_flight for entry in moments) == sum(arrivals) * work["service"]


SLOW_TO_DRAIN: dict[str, Any] = {
    "slots": 2,
    "maxReplicas": 9,
    "minReplicas": 0,
    "scaling": {
        "idleSeconds": 1,
        "targetBacklogPerSlot": 1.0,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}},
    },
}


@settings(max_examples=60)
@given(shapes(st.integers(30, 60)), WORK, st.integers(1, 8), st.integers(0, 100))
@example(SLOW_TO_DRAIN, {"service": 8, "start": 6, "replicas": 1}, 2, 39)
def test_a_constant_load_does_not_make_the_count_swing(
    shape: dict[str, Any], work: dict[str, int], rate: int, burst: int
) -> None:
    # Jobs that begin in the same second end in the same second. The window has to be longer than
    # such a wave, or the count follows each of them; the default is 300 s.
    spec = queue_spec(**shape)
    # At worst one slot more than the load needs works off the burst, and what came while the first
    # replicas started: 180 jobs of 8 s.
    seconds = 1600
    moments = simulate(spec, [rate + burst, *[rate] * seconds], seconds=seconds, **work)

    # Up once, down once after the burst; and at rest in the end.
    assert turns(moments) <= 2
    assert len({entry.decision.replicas for entry in moments[-100:]}) == 1
