"""The decision: how many replicas a queue gets now. A pure function, called about once a second.

1. The load asks for a count (demand.py), within minReplicas and maxReplicas. Within ``tolerance``
   of the current one it asks for that.
2. Windows: shrinking follows the highest recommendation of scaleDown's window, growth the lowest of
   scaleUp's. 3. Policies bound the step (rate.py).
4. Zero, with minReplicas 0: the last replica goes only after ``idleSeconds`` in a row in which
   nothing waited, ran or was due soon, and no fire was known. Then the window of 2. is not asked,
   so that it does not come on top; the policies of 3. are.
5. A count outside minReplicas and maxReplicas is mended at once, whatever 2. and 3. say. Draining
   replicas count against maxReplicas. 6. Busy replicas are never taken away.
Jobs of unknown tasks ask for no replica, but for one look of each new version of the application.
A load that cannot be read is no empty queue: the count is held, see ``_hold``. Of a paused queue
only what still runs asks for replicas: workers could not claim what waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from tidework.model.backlog import QueueLoad
from tidework.scaling import rate
from tidework.scaling.decision import Decision, Limit, ScalingInput
from tidework.scaling.demand import ROUNDING, Demand, unknown_in_words, weigh
from tidework.scaling.history import History


@dataclass(slots=True)
class _Trace:
    """What happened to the count on its way through the steps."""

    words: list[str]
    limits: list[Limit] = field(default_factory=list)

    def note(self, limit: Limit, words: str) -> None:
        if limit not in self.limits:
            self.limits.append(limit)
            self.words.append(words)


def decide(given: ScalingInput) -> Decision:
    """The replicas for this moment, the reason, and the history to pass to the next decision."""
    history = given.history.seen(given.replicas, given.now)
    if given.load is None:
        return _hold(given, history)
    load, paused = given.load, ""
    if load.paused:
        paused = f"the queue is paused with {load.backlog} waiting: "
        load = replace(load, backlog=0, due_soon=0, unknown=0)
        given = replace(given, load=load, prescale=0)
    look = _is_look_due(load, given)
    demand = weigh(load, given.slots, given.scaling, given.prescale, look=look)
    idle = _is_idle(load, given) and not look
    since = (given.now if history.idle_since is None else history.idle_since) if idle else None
    history = replace(history, idle_since=since, failing_since=None)
    trace = _Trace([paused + demand.words])
    if load.unknown and not look:
        trace.words.append(f"{unknown_in_words(load)}: they start no worker")
    target = _within_bounds(_within_tolerance(demand, given, trace), given, trace)
    count = target
    if not _goes_to_zero(given, history):
        count = _stabilize(count, given, history, trace)
    count = _limit_rate(count, given, history, trace)
    count = _keep_last(count, given, history, trace)
    drain_to = _leave_room(_within_bounds(count, given, trace), given, trace)
    return Decision(
        replicas=_keep_busy(drain_to, given, trace),
        wanted=min(max(demand.replicas, given.min_replicas), given.max_replicas),
        drain_to=drain_to,
        reason="; ".join(trace.words),
        history=history.recommended(target, given.now, given.scaling.behavior),
        limits=tuple(trace.limits),
    )


def _hold(given: ScalingInput, history: History) -> Decision:
    """Keep the count; after fallbackSeconds raise it to minReplicas. It never shrinks.

    What is held counts as a recommendation: an outage does not use up the scaleDown window. And it
    ends idleness, because nobody knows.
    """
    since = given.now if history.failing_since is None else history.failing_since
    failing = given.now - since
    history = replace(history, failing_since=since, idle_since=None)
    count = given.replicas
    words = f"load unknown for {failing:.0f} s ({given.error or 'no reason given'})"
    trace = _Trace([words])
    if count < given.min_replicas and failing >= given.scaling.fallback_seconds:
        count = given.min_replicas
        trace.note(Limit.LOAD_UNKNOWN, f"raised to minReplicas {count}")
    else:
        trace.note(Limit.LOAD_UNKNOWN, f"holding {count}")
    return Decision(
        replicas=count,
        wanted=count,
        drain_to=count,
        reason="; ".join(trace.words),
        history=history.recommended(count, given.now, given.scaling.behavior),
        limits=tuple(trace.limits),
    )


def _is_idle(load: QueueLoad, given: ScalingInput) -> bool:
    return not (load.backlog or load.in_flight or load.due_soon or given.prescale)


def _is_look_due(load: QueueLoad, given: ScalingInput) -> bool:
    """Are there jobs of unknown tasks that a worker of this version has not looked at yet?"""
    return bool(load.unknown and given.app_version and load.announced != given.app_version)


def _idle_seconds(given: ScalingInput, history: History) -> float | None:
    return None if history.idle_since is None else given.now - history.idle_since


def _goes_to_zero(given: ScalingInput, history: History) -> bool:
    idle = _idle_seconds(given, history)
    return given.min_replicas == 0 and idle is not None and idle >= given.scaling.idle_seconds


def _within_tolerance(demand: Demand, given: ScalingInput, trace: _Trace) -> int:
    """As the HPA: no change while the ratio of demand to count is close to 1."""
    current, tolerance = given.replicas, given.scaling.tolerance
    if current in (0, demand.replicas):
        return demand.replicas
    if abs(demand.exact / current - 1) > tolerance + ROUNDING:
        return demand.replicas
    trace.words.append(f"within the tolerance of {tolerance:g} around {current}")
    return current


def _stabilize(target: int, given: ScalingInput, history: History, trace: _Trace) -> int:
    current, now = given.replicas, given.now
    if target < current:
        window = given.scaling.behavior.scale_down.stabilization_window_seconds
        held = history.hold_down(current, target, now, window)
        limit, name = Limit.SCALE_DOWN_WINDOW, "scaleDown"
    else:
        window = given.scaling.behavior.scale_up.stabilization_window_seconds
        held = history.hold_up(current, target, now, window)
        limit, name = Limit.SCALE_UP_WINDOW, "scaleUp"
    if held.replicas != target:
        seconds = math.ceil(held.seconds)
        trace.note(limit, f"{name} window of {window} s keeps {held.replicas}, {seconds} s left")
    return held.replicas


def _limit_rate(count: int, given: ScalingInput, history: History, trace: _Trace) -> int:
    current, behavior = given.replicas, given.scaling.behavior
    if count > current:
        bound = rate.highest(current, behavior.scale_up, history, given.now)
        allowed, limit = min(count, bound.replicas), Limit.SCALE_UP_POLICY
    elif count < current:
        bound = rate.lowest(current, behavior.scale_down, history, given.now)
        allowed, limit = max(count, bound.replicas), Limit.SCALE_DOWN_POLICY
    else:
        return count
    if allowed != count:
        trace.note(limit, f"{bound.words}: {allowed}")
    return allowed


def _keep_last(count: int, given: ScalingInput, history: History, trace: _Trace) -> int:
    """The last replica stays until the queue has been idle for long enough."""
    if given.replicas == 0 or given.min_replicas > 0 or _goes_to_zero(given, history):
        return count
    idle = _idle_seconds(given, history)
    if idle is not None:
        # Told also while a window keeps more than the last one: this is what ends first, or last.
        trace.note(Limit.IDLE_COUNTDOWN, f"idle for {idle:.0f} of {given.scaling.idle_seconds} s")
    elif count == 0:
        soon = 0 if given.load is None else given.load.due_soon
        trace.note(Limit.IDLE_COUNTDOWN, f"{soon} due soon, the last replica stays")
    return max(1, count)


def _within_bounds(count: int, given: ScalingInput, trace: _Trace) -> int:
    if count < given.min_replicas:
        count = given.min_replicas
        trace.note(Limit.MIN_REPLICAS, f"minReplicas asks for {count}")
    if count > given.max_replicas:
        count = given.max_replicas
        trace.note(Limit.MAX_REPLICAS, f"maxReplicas allows {count}")
    return count


def _leave_room(count: int, given: ScalingInput, trace: _Trace) -> int:
    """No growth into the places of replicas that are still draining."""
    draining = given.states.draining
    room = max(given.replicas, given.max_replicas - draining)
    if count > room:
        count = room
        trace.note(
            Limit.DRAINING, f"{draining} still draining count against maxReplicas, leaving {count}"
        )
    return count


def _keep_busy(count: int, given: ScalingInput, trace: _Trace) -> int:
    busy = min(given.states.busy, given.replicas)
    if busy <= count:
        return count
    trace.note(Limit.BUSY, f"{busy} busy are not taken away")
    return busy
