"""One fire in the memory model: what decide_fire.lua does in Redis."""

from __future__ import annotations

from tidework.clock import from_ms
from tidework.model.fire import ConcurrencyPolicy, FireAnswer, FireKind, FireRequest, Verdict
from tidework.model.job import FINISHED_STATES
from tidework.testing.memory.cron_acts import last_of
from tidework.testing.memory.entry import Cron
from tidework.testing.memory.state import QueueState


def decide_fire(state: QueueState, request: FireRequest) -> Verdict | FireAnswer:
    """Advance the watermark and write one verdict, or say why not."""
    cron = state.crons.get(request.uid)
    if cron is None or cron.fingerprint != request.fingerprint:
        return FireAnswer.CHANGED
    if request.fire <= cron.watermark:
        if request.fire == cron.last_decided and cron.last_verdict is not None:
            state.counters["known"] += 1
            return cron.last_verdict
        return FireAnswer.STALE_FIRE
    if _is_suspended(state, cron, request.fire):
        return FireAnswer.SUSPENDED
    verdict = request.wanted
    if verdict is Verdict.ENQUEUED and request.job is not None:
        if request.max_runs is not None and cron.verdicts[verdict] >= request.max_runs:
            return FireAnswer.EXHAUSTED
        allows = request.policy is ConcurrencyPolicy.ALLOW
        active = [] if allows else state.active_runs(request.uid)
        if active and request.policy is ConcurrencyPolicy.FORBID:
            verdict = Verdict.SKIPPED_OVERLAP
        else:
            if active and request.policy is ConcurrencyPolicy.REPLACE:
                for job_id in active:
                    state.cancel(job_id)
                active = state.active_runs(request.uid)
            hold = bool(active) and request.policy is ConcurrencyPolicy.REPLACE
            job = request.job
            state.insert(job, job.encode(), cron=request.uid, hold=hold)
            cron.last_fire, cron.last_job = request.fire, job.id
            due_ms = request.fire * 1000
            state.fires.note_run(cron.uid, job.id, FireKind.SCHEDULE, due_ms, state.now)
            entry = state.entries.get(job.id)
            if entry is not None and entry.state in FINISHED_STATES:
                state.fires.note_end(entry, was_running=True)
    if verdict is not Verdict.ENQUEUED:
        before = cron.last_decided if cron.last_verdict is verdict else None
        state.fires.note_no_run(cron.uid, verdict, request.fire, before, state.now)
    cron.watermark = cron.last_decided = request.fire
    cron.last_verdict = verdict
    cron.verdicts[verdict] += 1
    return verdict


def _is_suspended(state: QueueState, cron: Cron, fire: int) -> bool:
    found = state.suspensions.get(cron.uid)
    if found is None:
        return False
    if found.holds(from_ms(max(state.now, fire * 1000))):
        cron.watermark = max(cron.watermark, fire, state.now // 1000)
        return True
    del state.suspensions[cron.uid]
    cron.watermark = max(cron.watermark, last_of(found))
    return fire <= last_of(found)
