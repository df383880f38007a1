"""Gather, decide, apply, twice a second for each queue: the operator's loop on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tidework.broker.broker import Broker
from tidework.clock import Clock
from tidework.dev.console import Console
from tidework.dev.local_workers import LocalWorkers
from tidework.errors import BrokerError
from tidework.manifests import TaskQueue
from tidework.model.backlog import Cordon, Presence, QueueLoad
from tidework.model.durability import Durability
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.scaling.decide import decide
from tidework.scaling.decision import Decision, ScalingInput
from tidework.scaling.history import History
from tidework.scaling.noting import Noting
from tidework.scheduler.leadership import Terms

EVERY = timedelta(seconds=0.5)
HORIZON = timedelta(seconds=10)
"""Jobs that become due within this keep the last worker."""


@dataclass(slots=True)
class ScaledQueue:
    """A queue with its workers; ``leaving``: its document is gone, its workers drain."""

    queue: TaskQueue
    workers: LocalWorkers
    leaving: bool = False
    asked: int = 0
    history: History = field(default_factory=History)
    reason: str = ""
    told: Mapping[str, object] = field(default_factory=dict)
    configured: tuple[int, Durability] | None = None
    noting: Noting = field(default_factory=Noting)


class Autoscaler:
    """``tick`` is for a Loop. ``queues`` is shared with whoever changes the documents.

    terms: under which the clients of a queue are told its durability
    """

    def __init__(
        self,
        broker: Broker,
        terms: Terms,
        clock: Clock,
        console: Console,
        queues: dict[QueueName, ScaledQueue],
    ) -> None:
        self._broker = broker
        self._terms = terms
        self._clock = clock
        self._console = console
        self._queues = queues

    async def tick(self) -> timedelta:
        """One round over all queues; the wait until the next."""
        for name, scaled in list(self._queues.items()):
            self._note_exits(name, scaled)
            if scaled.leaving:
                scaled.workers.scale(0, ())
                if scaled.workers.alive == 0:
                    del self._queues[name]
                continue
            await self._scale(name, scaled)
        return EVERY

    def _note_exits(self, name: QueueName, scaled: ScaledQueue) -> None:
        for found in scaled.workers.reap():
            self._console.tell(
                "worker_exited",
                queue=name.name,
                worker=found.worker,
                cause=found.cause,
                wait=found.wait,
            )

    async def _scale(self, name: QueueName, scaled: ScaledQueue) -> None:
        spec, workers = scaled.queue.spec, scaled.workers
        load: QueueLoad | None = None
        error = ""
        present: list[Presence] = []
        try:
            await self._configure(name, scaled)
            load = await self._broker.gather(name, horizon=HORIZON)
            present = [w for w in await self._broker.workers(name) if not w.is_stale]
        except BrokerError as failure:
            error = str(failure)
        busy = load.busy_workers if load is not None else {}
        decision = decide(
            ScalingInput(
                load=load,
                now=self._clock.monotonic(),
                replicas=scaled.asked,
                states=workers.states([worker.incarnation for worker in present], busy),
                slots=scaled.queue.capacity,
                min_replicas=spec.min_replicas,
                max_replicas=spec.max_replicas,
                scaling=spec.scaling,
                error=error,
                app_version=workers.app_version,
                history=scaled.history,
            )
        )
        scaled.history = decision.history
        if decision.replicas != scaled.asked:
            self._console.tell(
                "scaled",
                queue=name.name,
                before=scaled.asked,
                after=decision.replicas,
                reason=decision.reason,
            )
        await self._note(name, scaled, decision, load)
        scaled.reason = decision.reason
        scaled.asked = decision.replicas
        unwanted = [w.incarnation for w in present if Cordon.PERSON in w.cordon]
        workers.scale(decision.replicas, busy, unwanted)

    async def _note(
        self, name: QueueName, scaled: ScaledQueue, decision: Decision, load: QueueLoad | None
    ) -> None:
        term, now, noting = self._terms.term(name), self._clock.monotonic(), scaled.noting
        news = noting.news(scaled.asked, decision, load, now)
        if news is None or term is None:
            return
        try:
            await self._broker.note_scaling(name, term, news, is_step=noting.is_step(news))
        except BrokerError:
            return  # the decision counts without it
        noting.note(news, now)

    async def _configure(self, name: QueueName, scaled: ScaledQueue) -> None:
        term, durability = self._terms.term(name), scaled.queue.spec.durability
        if term is not None and scaled.configured != (term, durability):
            await self._broker.configure(name, term, durability)
            scaled.configured = (term, durability)

    async def tell_status(self) -> timedelta:
        """A line per queue whose numbers changed since the last one."""
        for name, scaled in list(self._queues.items()):
            try:
                stats = await self._broker.stats(name)
            except BrokerError:
                continue
            found: dict[str, object] = {state.value: stats.states[state] for state in JobState}
            found["ready"] = stats.backlog
            found["workers"] = scaled.workers.alive
            if found != scaled.told and (scaled.told or stats.unfinished):
                self._console.tell("status", queue=name.name, **found)
                scaled.told = found
        return timedelta(seconds=2)
