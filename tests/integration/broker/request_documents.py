"""Requests that take documents in, in rows."""

from __future__ import annotations

from tests.integration.broker.request_steps import (
    BROKEN,
    BROKEN_NAMED,
    LARGE,
    LARGE_AS_READ,
    NAMED,
    NO_ID,
    THIRD,
    replay_named,
    take_different,
    take_documents,
)
from tests.integration.broker.rig import Row

DOCUMENTS = [
    Row(
        "intake",
        "a job, a dead letter, a further document",
        lambda rig, broker: rig.intake(broker, NO_ID, BROKEN, more=1),
        before=take_different,
        newer=lambda rig: rig.intake(rig.broker, THIRD),
    ),
    Row(
        "intake",
        "one of two equal documents without an id",
        lambda rig, broker: rig.intake(broker, NO_ID),
        before=lambda rig: take_documents(rig, NO_ID, NO_ID),
    ),
    Row(
        "intake",
        "one of two equal documents that are refused",
        lambda rig, broker: rig.intake(broker, BROKEN),
        before=lambda rig: take_documents(rig, BROKEN, BROKEN),
    ),
    Row(
        "intake",
        "one of two equal documents that name their id",
        lambda rig, broker: rig.intake(broker, NAMED),
        before=lambda rig: take_documents(rig, NAMED, NAMED),
        newer=lambda rig: rig.intake(rig.broker, NAMED),
        skips=frozenset({"documents", "counters"}),
        reason="whatever takes the other one finds that its job is known",
    ),
    Row(
        "intake",
        "a document that is refused under its own id, and replayed since",
        lambda rig, broker: rig.intake(broker, BROKEN_NAMED),
        before=lambda rig: take_documents(rig, BROKEN_NAMED),
        newer=replay_named,
    ),
    Row(
        "intake",
        "one of two equal documents that are too large",
        lambda rig, broker: rig.intake(broker, LARGE_AS_READ),
        before=lambda rig: take_documents(rig, LARGE, LARGE),
    ),
    Row(
        "intake_full",
        "a job, a dead letter, a further document",
        lambda rig, broker: rig.intake(broker, NO_ID, BROKEN, more=5, full=True),
        before=take_different,
        newer=lambda rig: rig.intake(rig.broker, THIRD),
    ),
]
