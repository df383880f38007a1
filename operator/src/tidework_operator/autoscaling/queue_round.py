"""One round of one queue that we lead: decide, cordon, plan, apply.

Writes to Redis carry the term; a refused one ends the round before anything in the cluster is
touched. Trouble with Redis or the API server holds the queue and is told in the report.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tidework.broker.broker import Leader
from tidework.clock import Clock
from tidework.errors import BrokerError, StaleTermError
from tidework.logs import queue_fields
from tidework.manifests import TaskQueue
from tidework.scaling import Decision
from tidework_operator.autoscaling.apply import apply
from tidework_operator.autoscaling.choice import choose, pause_of
from tidework_operator.autoscaling.fleet import Fleet, read_fleet
from tidework_operator.autoscaling.gather import ANSWER_WITHIN_S, RedisSight
from tidework_operator.autoscaling.memory import Memory
from tidework_operator.autoscaling.plan import Plan, Scale, cordon, plan
from tidework_operator.cluster import Cluster, ClusterError, Object
from tidework_operator.events import Events
from tidework_operator.observations import Observations, ScalingReport, Trouble

CORDON_TTL = timedelta(seconds=60)
"""Renewed every round: if we die, cordoned workers resume after this."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """A queue as it was found. found: the TaskQueue's object, which events are about."""

    found: Object
    document: TaskQueue
    deployment: Object
    pods: Sequence[Object]
    redis: RedisSight


class QueueRound:
    """Runs rounds."""

    def __init__(
        self,
        cluster: Cluster,
        broker: Leader,
        observations: Observations,
        events: Events,
        clock: Clock,
    ) -> None:
        self._observations = observations
        self._cluster = cluster
        self._broker = broker
        self._events = events
        self._clock = clock

    async def run(self, subject: Subject, memory: Memory) -> ScalingReport:
        """One round. Raises StaleTermError: we do not lead this queue any more."""
        document, redis = subject.document, subject.redis
        now = self._clock.monotonic()
        held = redis.load.busy_workers if redis.load is not None else {}
        fleet = read_fleet(subject.deployment, subject.pods, redis.workers, held, self._clock.now())
        memory.look(fleet, now, knows_workers=redis.trouble is None)
        await self._check_last_step(subject, fleet, memory, now)
        error = redis.trouble.message if redis.trouble is not None else ""
        decision = choose(document, fleet, redis.load, error, now, memory.history)
        memory.history = decision.history
        cordoned: Mapping[str, int] = {}
        if redis.trouble is None:
            wanted = cordon(fleet, decision, memory.seen, now)
            cordoned = await self._cordon(document, memory, wanted)
        step = plan(fleet, decision, cordoned, memory.seen, now)
        failure = await self._apply(subject, fleet, decision, step, memory)
        await self._note(subject, fleet, decision, memory, now)
        why = decision.reason
        if step.waiting:
            why += f"; waiting: {step.waiting}"
        if failure is not None:
            why += f"; {failure.message}"
        return ScalingReport(
            wanted=decision.wanted,
            why=why,
            limits=decision.limits,
            inactive=pause_of(document) or failure or redis.trouble,
            last_scale=memory.last_scale,
        )

    async def _note(
        self, subject: Subject, fleet: Fleet, decision: Decision, memory: Memory, now: float
    ) -> None:
        """Keep it for people to read. Raises StaleTermError."""
        redis, queue = subject.redis, subject.document.queue_name
        news = memory.noting.news(fleet.replicas, decision, redis.load, now)
        if news is None or redis.trouble is not None:
            return
        is_step = memory.noting.is_step(news)
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._broker.note_scaling(queue, memory.term, news, is_step=is_step)
        except StaleTermError:
            raise
        except (BrokerError, TimeoutError):
            return  # the decision counts without it
        memory.noting.note(news, now)

    async def _cordon(
        self, document: TaskQueue, memory: Memory, wanted: Sequence[str]
    ) -> Mapping[str, int]:
        """Incarnation -> leases of those that are cordoned now; {} if Redis did not answer."""
        if not wanted and not memory.may_be_cordoned:
            return {}
        queue = document.queue_name
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                answer = await self._broker.drain(
                    queue, memory.term, wanted, len(wanted), ttl=CORDON_TTL
                )
        except StaleTermError:
            raise
        except (BrokerError, TimeoutError) as error:
            memory.may_be_cordoned = True
            logger.warning(
                "cannot cordon workers of queue %s: %s",
                queue,
                str(error) or "no answer",
                extra={"event": "cordon_failed", **queue_fields(queue)},
            )
            return {}
        memory.note_cordoned([worker.incarnation for worker in answer])
        return {worker.incarnation: worker.leases for worker in answer}

    async def _apply(
        self, subject: Subject, fleet: Fleet, decision: Decision, step: Plan, memory: Memory
    ) -> Trouble | None:
        """All actions, or as far as the API server lets us; what kept us from the rest."""
        for action in step.actions:
            try:
                await apply(self._cluster, subject.deployment, action)
            except ClusterError as error:
                if error.is_conflict:
                    return None  # overtaken: the next round sees by whom
                queue = subject.document.queue_name
                logger.warning(
                    "queue %s: %s",
                    queue,
                    error,
                    extra={"event": "scaling_failed", **queue_fields(queue)},
                )
                return Trouble("ScaleFailed", str(error))
            memory.note_applied(action, fleet, self._clock.monotonic(), self._clock.now())
            if isinstance(action, Scale):
                await self._tell(subject, fleet, decision, action)
        return None

    async def _tell(
        self, subject: Subject, fleet: Fleet, decision: Decision, action: Scale
    ) -> None:
        words = f"replicas {fleet.replicas} -> {action.replicas}: {decision.reason}"
        queue = subject.document.queue_name
        logger.info(
            "queue %s: %s", queue, words, extra={"event": "queue_scaled", **queue_fields(queue)}
        )
        if action.replicas > fleet.replicas or action.replicas == decision.drain_to:
            # The steps between are many; the last one says enough.
            await self._events.post(subject.found, "Scaled", words)

    async def _check_last_step(
        self, subject: Subject, fleet: Fleet, memory: Memory, now: float
    ) -> None:
        wrong = memory.wrong_victims(fleet, now)
        if not wrong:
            return
        self._observations.wrong_victims += len(wrong)
        await self._events.post(
            subject.found,
            "WrongVictim",
            "the ReplicaSet controller took other pods than the idle ones that were marked: "
            f"{', '.join(sorted(wrong))} stayed; jobs of the others drain or run again",
            warning=True,
        )
