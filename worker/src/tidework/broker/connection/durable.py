"""Durability of one write: what is sent behind a script, and whether its reply is enough.

WAIT and WAITAOF speak of the last write of the connection that they come over, hence they follow
the script in the same go. A script that wrote nothing would be waited for in vain or not at all:
scripts that change something also write when they are resent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tidework.broker.connection.packing import Words
from tidework.broker.connection.refusals import OLDEST_WITH_WAITAOF, version_of
from tidework.errors import BrokerRefusedError, NotDurableError
from tidework.model.durability import Durability
from tidework.model.redis_url import Place

REPLICAS = 1
"""How many have to have a write of ``replica``."""

DURABLE_WITHIN = timedelta(seconds=3)
"""Below the time after which a reply counts as lost, above the second between two fsyncs."""

_MS = timedelta(milliseconds=1)


def confirming(durability: Durability, within: timedelta) -> tuple[Words, ...]:
    """The command that asks how durable the write before it is, if any."""
    match durability:
        case Durability.ASYNC:
            return ()
        case Durability.REPLICA:
            return (("WAIT", REPLICAS, within // _MS),)
        case Durability.FSYNC:
            return (("WAITAOF", 1, 0, within // _MS),)


def check_server(durability: Durability, info: Mapping[str, Any], place: Place) -> None:
    """Raises BrokerRefusedError before a write to a server that can never make it durable."""
    if durability is not Durability.FSYNC:
        return
    if version_of(info) < OLDEST_WITH_WAITAOF:
        raise _refused(place, f"is version {info.get('redis_version')} and has no WAITAOF")
    if not info.get("aof_enabled"):
        raise _refused(place, "keeps no append-only file")


def check_reply(
    durability: Durability, reply: Any, place: Place, within: timedelta, *, named_by: str
) -> None:
    """Raises NotDurableError if too few have the write, BrokerRefusedError if none can say."""
    if isinstance(reply, Exception):
        raise BrokerRefusedError(
            f"Redis at {place} has stored this and refuses to say how durably ({reply}); "
            f"allow {'WAITAOF' if durability is Durability.FSYNC else 'WAIT'} to its user "
            f"({named_by}), or set the queue's durability to async"
        )
    if durability is Durability.REPLICA and reply < REPLICAS:
        raise NotDurableError(str(place), "replicas", reply, REPLICAS, within)
    if durability is Durability.FSYNC and reply[0] < 1:
        raise NotDurableError(str(place), "append-only files on disk", reply[0], 1, within)


def _refused(place: Place, reason: str) -> BrokerRefusedError:
    return BrokerRefusedError(
        f"Redis at {place} {reason}, which durability fsync needs: use Redis 7.2 or Valkey 7.2 "
        "or later with `appendonly yes`, or set the queue's durability to replica or async"
    )
