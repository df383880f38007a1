"""How many replicas the load asks for, and which rule says so. The largest one counts.

- running: every running job needs its slot. Without this rule a queue whose workers keep up would
  look empty, shrink, fall behind and grow again, for ever.
- backlog: one slot is meant to have targetBacklogPerSlot jobs before it, its own included.
- wait: what waits is to be worked off within targetWaitSeconds. Silent while the service time is
  not known. The service time is the plain mean over the queue's tasks: the load does not say how
  the backlog divides among them.
- prescale: known fires, those of CronTasks that come soon.
- look: a new version of the application may know tasks that were unknown before. One replica looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidework.manifests import Scaling
from tidework.model.backlog import QueueLoad

# What floating point adds must not cost a replica.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Demand:
    """exact: replicas, not rounded; words: the rule with its numbers."""

    exact: float
    words: str

    @property
    def replicas(self) -> int:
        """Whole replicas, rounded up."""
        return max(0, math.ceil(self.exact - ROUNDING))


def weigh(
    load: QueueLoad, slots: int, scaling: Scaling, prescale: int, *, look: bool = False
) -> Demand:
    """The rule that asks for most."""
    rules = [_backlog(load, slots, scaling), _running(load, slots)]
    wait = _wait(load, slots, scaling)
    if wait is not None:
        rules.append(wait)
    if prescale > 0:
        rules.append(Demand(float(prescale), "known fires"))
    if look:
        rules.append(Demand(1.0, f"{unknown_in_words(load)}: a new version has a look"))
    found = max(rules, key=lambda rule: rule.exact)
    return Demand(found.exact, f"{found.words} -> {found.replicas}")


def unknown_in_words(load: QueueLoad) -> str:
    """The jobs of unknown tasks, with the task of one of them."""
    if load.unknown == 1:
        return f"1 job waits for a worker that knows its task {load.unknown_task!r}"
    return (
        f"{load.unknown} jobs wait for a worker that knows their task, such as "
        f"{load.unknown_task!r}"
    )


def _backlog(load: QueueLoad, slots: int, scaling: Scaling) -> Demand:
    target = scaling.target_backlog_per_slot
    jobs = load.backlog + load.in_flight
    if jobs == 0:
        return Demand(0.0, "nothing waiting or running")
    words = (
        f"{load.backlog} waiting + {load.in_flight} running over {_slots(slots)} x "
        f"{target:g} per slot"
    )
    return Demand(jobs / (slots * target), words)


def _running(load: QueueLoad, slots: int) -> Demand:
    return Demand(load.in_flight / slots, f"{load.in_flight} running over {_slots(slots)}")


def _wait(load: QueueLoad, slots: int, scaling: Scaling) -> Demand | None:
    target = scaling.target_wait_seconds
    known = [seconds for seconds in load.service_time.values() if 0 < seconds < math.inf]
    if target is None or not known:
        return None
    seconds = sum(known) / len(known)
    words = (
        f"{load.backlog} waiting x {seconds:.3g} s each over {_slots(slots)} within {target:g} s"
    )
    return Demand(load.backlog * seconds / (slots * target), words)


def _slots(slots: int) -> str:
    return f"{slots} slot" if slots == 1 else f"{slots} slots"
