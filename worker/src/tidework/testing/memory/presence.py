"""Workers in the memory model: what they say of themselves, and what people ask of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from tidework.broker.answers import CordonAnswer, UncordonAnswer
from tidework.broker.broker import KEEP_TASKS
from tidework.clock import from_ms
from tidework.model.backlog import Cordon, Presence, StacksAnswer
from tidework.model.identity import QueueName
from tidework.model.job import JobState
from tidework.testing.memory.calls import MemoryCalls


class MemoryPresence(MemoryCalls):
    """Presence, cordons by a person, requests for stacks."""

    async def beat(
        self,
        queue: QueueName,
        presence: Presence,
        *,
        ttl: timedelta,
        stacks: StacksAnswer | None = None,
    ) -> int:
        state = self._open(queue)
        name, document = presence.incarnation, json.loads(json.dumps(presence.document))
        asked = 0
        if state.presence.get(name, presence) is not None:  # else it has left: the beat is late
            state.seen[name] = state.now
            state.presence[name] = Presence(name, from_ms(state.now), document)
            asked = state.stack_requests.note_beat(name, stacks, state.now)
        state.forget_absent(ttl)
        return asked

    async def announce(self, queue: QueueName, version: str, tasks: Sequence[str]) -> int:
        state = self._open(queue)
        state.announced = version
        oldest = state.now - KEEP_TASKS // timedelta(milliseconds=1)
        kept = {task: at for task, at in state.tasks.items() if at > oldest}
        state.tasks = kept | dict.fromkeys(tasks, state.now)
        known = set(tasks)
        waiting = [e for e in state.entries.values() if e.state is not JobState.RUNNING]
        meant = [e for e in waiting if e.unknown_until_ms and e.task in known]
        for entry in meant:
            entry.unknown_until_ms = 0
            if entry.state is JobState.SCHEDULED:
                entry.state, entry.available_ms = JobState.READY, state.now
                entry.span_ms = 0
        state.wake()
        await self._announce()
        return len(meant)

    async def tasks(self, queue: QueueName) -> tuple[str, ...]:
        return tuple(sorted(self._open(queue).tasks))

    async def leave(self, queue: QueueName, incarnation: str) -> None:
        state = self._open(queue)
        # Its last reply stays: a request of it that was sent twice may still be on its way.
        state.seen[incarnation] = state.now
        state.presence[incarnation] = None
        state.cordons.note_person(incarnation, state.now, cordons=False)
        state.stack_requests.forget(incarnation)

    async def workers(self, queue: QueueName) -> tuple[Presence, ...]:
        state = self._open(queue)
        return tuple(
            replace(
                found,
                seen_at=from_ms(state.seen[name]),
                silent_for=timedelta(milliseconds=max(0, state.now - state.seen[name])),
                cordon=state.cordons.by_whom(name, state.now),
            )
            for name, found in sorted(state.presence.items())
            if found is not None
        )

    async def cordon(self, queue: QueueName, incarnation: str) -> CordonAnswer | None:
        state = self._open(queue)
        if state.presence.get(incarnation) is None:
            return None
        before = Cordon.PERSON in state.cordons.by_whom(incarnation, state.now)
        state.cordons.note_person(incarnation, state.now, cordons=True)
        running = state.in_state(JobState.RUNNING)
        return CordonAnswer(sum(e.worker == incarnation for e in running), before)

    async def uncordon(self, queue: QueueName, incarnation: str) -> UncordonAnswer:
        state = self._open(queue)
        before = state.cordons.by_whom(incarnation, state.now)
        state.cordons.note_person(incarnation, state.now, cordons=False)
        state.wake()
        await self._announce()
        return UncordonAnswer(Cordon.PERSON in before, Cordon.AUTOSCALER in before)

    async def ask_stacks(self, queue: QueueName, incarnation: str) -> int | None:
        state = self._open(queue)
        if state.presence.get(incarnation) is None:
            return None
        number = state.stack_requests.ask(incarnation)
        state.wake_idle()
        await self._announce()
        return number

    async def stacks(self, queue: QueueName, incarnation: str) -> StacksAnswer | None:
        return self._open(queue).stack_requests.answers.get(incarnation)
